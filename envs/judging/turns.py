"""Questions about single turns: was this step right, which is the first that was not, and was each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from random import Random

from turnwise.envs.judging.drawing import AttemptPart, Draw, JudgingQuestion, balanced, once_per_book, strata
from turnwise.envs.judging.knobs import JudgingKnobs
from turnwise.envs.judging.recorded import EpisodeBook, Recorded
from turnwise.envs.judging.render import played


@once_per_book
def _steps(book: EpisodeBook) -> Mapping[Hashable, Mapping[bool, Sequence[AttemptPart]]]:
    """Attempts up to each turn of which it is known whether it was right."""
    return strata(
        (AttemptPart(one, k), not turn.wrong)
        for one in book.episodes
        for k, turn in enumerate(one.turns, 1)
        if turn.wrong is not None
    )


def step(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask whether the last act is right: yes as often as no at each place and each verb."""
    right = rng.random() < 0.5
    part = balanced(rng, right, _steps(book))
    if part is None:
        return None
    text = f"{played(part)}\n\nIs the last act right ? yes or no"
    return JudgingQuestion(text, "yes" if right else "no", right, ("yes", "no"))


@once_per_book
def _firsts(book: EpisodeBook) -> Mapping[Hashable, Mapping[int, Sequence[Recorded]]]:
    """Attempts by environment and length, then by the number of the first wrong turn (0: none); lengths with several."""
    found: defaultdict[Hashable, defaultdict[int, list[Recorded]]] = defaultdict(lambda: defaultdict(list))
    for one in book.episodes:
        if all(turn.wrong is not None for turn in one.turns):
            found[one.env, len(one.turns)][first_wrong(one)].append(one)
    return {key: dict(by_first) for key, by_first in found.items() if len(by_first) > 1}


def first_wrong(one: Recorded) -> int:
    """The number of the first wrong turn, from 1; 0 where none was."""
    return next((k for k, turn in enumerate(one.turns, 1) if turn.wrong), 0)


def first(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask which turn is the first wrong one: each answer that a length has is as likely as its others."""
    if not (found := _firsts(book)):
        return None
    keys = list(found)
    weights = [sum(map(len, found[key].values())) for key in keys]
    by_first = found[rng.choices(keys, weights)[0]]
    number = rng.choice(sorted(by_first))
    one = rng.choice(by_first[number])
    text = f"{played(AttemptPart(one, len(one.turns)))}\n\nWhich act is the first wrong one ? its number, 0 if none is"
    return JudgingQuestion(text, str(number), number, tuple(str(n) for n in range(len(one.turns) + 1)))


@once_per_book
def _checked(book: EpisodeBook) -> Mapping[Hashable, Mapping[bool, Sequence[AttemptPart]]]:
    """Attempts up to each turn until which all are labelled, by whether all were right."""
    return strata(
        (AttemptPart(one, k), not any(turn.wrong for turn in one.turns[:k]))
        for one in book.episodes
        for k in range(1, len(one.turns) + 1)
        if all(turn.wrong is not None for turn in one.turns[:k])
    )


def chain(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask for a verdict on each act and on all of them: all are right as often as not, at each length and each last verb."""
    right = rng.random() < 0.5
    part = balanced(rng, right, _checked(book))
    if part is None:
        return None
    each = [not turn.wrong for turn in part.episode.turns[: part.turns]]
    some = [[rng.random() < 0.5 for _ in each] for _ in range(8)]
    offers = dict.fromkeys(_chained(one) for one in (each, [True] * len(each), *some))
    return JudgingQuestion(chain_question(part), _chained(each), [*each, right], (*offers,))


def chain_question(part: AttemptPart) -> str:
    """The question for a verdict on each act of an attempt, up to one of its turns, and on all of them."""
    return f"{played(part)}\n\nIs each act right ? yes or no for one after the other , and once more whether all are"


def _chained(each: Sequence[bool]) -> str:
    return " ".join(("no", "yes")[right] for right in (*each, all(each)))


DRAWS: dict[str, Draw] = {"step": step, "first": first, "chain": chain}
