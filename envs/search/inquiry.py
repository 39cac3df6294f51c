"""Questions that come one after the other, and refer to answers of earlier ones: a long inquiry in one library.

A question is told once, when the one before it is answered, and with it what the right answer was. The last ``back`` questions name things
only by the number of the question that they answered, so that they cannot even be looked up without what was told long before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.search.forms import FactStep, QuestionDraft, chained, walked, weighed_years
from turnwise.envs.search.question import SearchQuestion
from turnwise.envs.search.schema import schema

_TRIES = 60  # at a question


class _FoundAnswer(NamedTuple):
    """The answer of an earlier question, from 0, as an entity of the world."""

    number: int
    entity: int


def drawn_inquiry(draft: QuestionDraft, number: int, back: int) -> tuple[SearchQuestion, ...] | None:
    """``number`` questions, of which the last ``back`` refer to earlier answers; None where too little fits.

    Of three that refer back, two ask which of two answers came first, and one asks for a fact about an answer.
    """
    questions, found = list[SearchQuestion](), list[_FoundAnswer]()
    while len(questions) < number - back:
        entity = _plain(draft, questions, {one.entity for one in found})
        if entity is None:
            return None
        found.append(_FoundAnswer(len(questions) - 1, entity))
    for place in range(back):
        asked = _about(draft, found, place) if place % 3 == 2 else _between(draft, found, place)
        if asked is None:
            return None
        questions.append(asked)
    return tuple(questions)


def _plain(draft: QuestionDraft, questions: list[SearchQuestion], met: set[int]) -> int | None:
    """Add a question about facts whose answer is an entity that no other has; return it."""
    for _ in range(_TRIES):
        steps = walked(draft, draft.hops)
        if steps is None or steps[-1].relation.target not in schema().kind or steps[-1].target in met:
            continue
        questions.append(chained(draft, steps))
        return steps[-1].target
    return None


def _about(draft: QuestionDraft, found: Sequence[_FoundAnswer], place: int) -> SearchQuestion | None:
    """Ask for a fact about the answer of an early question."""
    for earlier in found[place:]:
        graph, at = draft.graph, earlier.entity
        told = [r for r in schema().of_kind[graph.kind(at)] if not r.office and graph.told(at, r)]
        if told:
            relation = draft.rng.choice(told)
            step = FactStep(at, relation, graph.target(at, relation))
            asked = chained(draft, (step,), _called(draft, earlier))
            return asked._replace(refers=(earlier.number,))
    return None


def _between(draft: QuestionDraft, found: Sequence[_FoundAnswer], place: int) -> SearchQuestion | None:
    """Ask which of two answers came first, one of them of an early question."""
    dated = [one for one in found if _year(draft, one.entity) is not None]
    early = [one for one in dated if one.number >= place]
    if not early:
        return None
    others = [one for one in dated if _year(draft, one.entity) != _year(draft, early[0].entity)]
    if not others:
        return None
    pair = [early[0], draft.rng.choice(others)]
    draft.rng.shuffle(pair)
    asked = weighed_years(draft, [one.entity for one in pair], [_called(draft, one) for one in pair])
    return asked._replace(refers=tuple(sorted(one.number for one in pair)))


def _year(draft: QuestionDraft, entity: int) -> int | None:
    relation = schema().year_of.get(draft.graph.kind(entity))
    told = relation is not None and draft.graph.told(entity, relation)
    return draft.graph.target(entity, relation) if relation and told else None


def _called(draft: QuestionDraft, earlier: _FoundAnswer) -> str:
    return draft.say("earlier_answer", number=earlier.number + 1)


def question_line(number: int, of: int, text: str) -> str:
    """A question as it is told."""
    return f"Question {number + 1} of {of}: {text}"


def answer_line(number: int, question: SearchQuestion) -> str:
    """What was right, as it is told when a question is answered."""
    return f"The answer to question {number + 1} is {question.answers[0]}."
