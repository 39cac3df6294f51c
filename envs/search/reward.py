"""The rewards of an episode: components that are chosen by name, each with a weight.

| part | paid | after |
|---|---|---|
| ``evidence`` | the share of gold passages that were read, at the answer | coverage in MARAG-R1; IM-RAG |
| ``entity`` | if the answer is wrong: the share of hidden gold entities that the agent named | E-GRPO |
| ``citations`` | if it is right: −(1 − share of rubrics satisfied) | CaRR: (1 − α) + α·rubric |
| ``knowledge`` | right: 0.6, 0.4, 0.2, 0 for 0, 1, 2, ≥ 3 searches; wrong: 0.05 if it searched; malformed: −1 | IKEA |
| ``format`` | wrong but well-formed: 0.2, and 0.1 if the answer was retrieved; malformed: 0.1, right: −0.2 | Search-R1 |
| ``judge`` | for each judgement of a retrieval: +0.3 right, −0.6 false trust, −0.3 false doubt | ReSeek |
| ``search_cost`` | −1 for each search | |

Nothing here reads observations for answers: only what the agent itself answered counts, so a page that says
``<answer>`` pays nothing. E-GRPO's division by the group's best needs the group and is a reward part of the trainer's
(`trainers/reward/near_miss.py`). Left out: ReSeek's reranker (the gold passages are known here), MARAG's pay for using many tools (a trap).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.core import RewardKind
from turnwise.envs.search.answers import AnswerVerdict
from turnwise.envs.search.question import SearchQuestion
from turnwise.envs.search.state import SearchState, entities_named
from turnwise.errors import EnvError, NotFoundError

PARTS: Mapping[str, RewardKind] = {
    "evidence": RewardKind.STEP,
    "entity": RewardKind.STEP,
    "citations": RewardKind.COST,
    "knowledge": RewardKind.STEP,
    "format": RewardKind.STEP,
    "judge": RewardKind.STEP,
    "search_cost": RewardKind.COST,
}
_BONUS = (0.6, 0.4, 0.2)
_NUDGE = 0.05
_WELL_FORMED, _RETRIEVED, _MALFORMED = 0.2, 0.1, 0.1
_JUDGED = {(True, True): 0.3, (False, False): 0.3, (True, False): -0.6, (False, True): -0.3}  # (said, ideal)


class AnswerFacts(NamedTuple):
    """The facts from which the reward components are computed at the answer."""

    verdict: AnswerVerdict
    right: bool
    recall: float  # of the gold passages
    entities: float  # of the hidden gold entities
    rubric: float
    searches: int
    malformed: bool
    retrieved: bool  # some gold passage was read


def check_parts(parts: Mapping[str, float]) -> dict[str, float]:
    """Weights of parts that exist.

    Raises:
        NotFoundError: one does not.
        EnvError: a weight is negative.
    """
    for name, weight in parts.items():
        if name not in PARTS:
            raise NotFoundError("reward part of the search called", name, PARTS)
        if not weight >= 0:
            raise EnvError(f"The reward part {name!r} has the weight {weight}.", "Weights are at least 0.")
    return dict(parts)


def facts_at_answer(state: SearchState, verdict: AnswerVerdict, right: bool) -> AnswerFacts:
    """Return the facts that are known when the agent answers."""
    question = state.question
    found = set(question.evidence) & set(state.seen)
    hidden = hidden_entities(question)
    named = hidden & set(state.named)
    return AnswerFacts(
        verdict, right,
        recall=len(found) / len(question.evidence) if question.evidence else 1.0,
        entities=len(named) / len(hidden) if hidden else 0.0,
        rubric=rubric_share(question, set(state.named), set(state.cited)),
        searches=state.searches, malformed=state.malformed > 0, retrieved=bool(found),
    )  # fmt: skip


def final_rewards(parts: Mapping[str, float], facts: AnswerFacts) -> dict[str, float]:
    """The parts that are paid at the answer.

    >>> wrong = AnswerFacts(AnswerVerdict(0, 0, 0), False, 0.5, 2 / 3, 0.0, 2, False, True)
    >>> final_rewards({"evidence": 0.5, "entity": 0.3, "knowledge": 1, "format": 1, "citations": 0.3}, wrong)
    {'evidence': 0.25, 'entity': 0.2, 'knowledge': 0.05, 'format': 0.3, 'citations': 0.0}
    >>> right = AnswerFacts(AnswerVerdict(1, 1, 1), True, 1.0, 1.0, 0.5, 1, False, True)
    >>> final_rewards({"entity": 0.3, "knowledge": 1, "format": 1, "citations": 0.3}, right)
    {'entity': 0.0, 'knowledge': 0.4, 'format': 0.0, 'citations': -0.15}
    """
    values = {
        "evidence": facts.recall,
        "entity": 0.0 if facts.right or facts.malformed else facts.entities,
        "citations": facts.rubric - 1.0 if facts.right else 0.0,
        "knowledge": _knowledge(facts),
        "format": _format(facts),
    }
    return {name: round(weight * values[name], 12) for name, weight in parts.items() if name in values}


def judgement(state: SearchState, trusted: bool) -> float:
    """ReSeek's reward for saying whether the latest retrieval helps."""
    told = {*state.shown, state.opened} & set(state.question.evidence)
    return _JUDGED[trusted, bool(told)]


def hidden_entities(question: SearchQuestion) -> set[int]:
    """The gold entities that the question does not name."""
    everything = " , ".join(name for names in question.entities for name in names)
    return entities_named(everything, question)


def rubric_share(question: SearchQuestion, named: set[int], cited: set[int]) -> float:
    """CaRR's share of facts that are named, cited and connected to the answer; 1 where there is nothing to show.

    A fact counts if the agent named its hidden entities, cited a passage that states it, and it is reached
    from the answer over other facts that count; where the answer is no entity, from the last fact.
    """
    if not question.rubric:
        return 1.0
    supported = [r for r in question.rubric if set(r.hidden) <= named and cited & set(r.evidence)]
    last = question.rubric[-1]
    reached = {question.answer} if question.answer >= 0 else set(last.links if last in supported else ())
    counted: set[int] = set()
    while new := {i for i, r in enumerate(supported) if i not in counted and reached & set(r.links)}:
        counted |= new
        reached |= {entity for i in new for entity in supported[i].links}
    return len(counted) / len(question.rubric)


def _knowledge(facts: AnswerFacts) -> float:
    if facts.malformed:
        return -1.0
    if facts.right:
        return _BONUS[facts.searches] if facts.searches < len(_BONUS) else 0.0
    return _NUDGE if facts.searches else 0.0


def _format(facts: AnswerFacts) -> float:
    if facts.right:
        return -_WELL_FORMED if facts.malformed else 0.0
    return _MALFORMED if facts.malformed else _WELL_FORMED + _RETRIEVED * facts.retrieved
