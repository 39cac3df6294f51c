"""Questions about whole attempts: solved or not, which of two is better and by how much, how several compare."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import permutations, product
from random import Random

from turnwise.envs.judging.drawing import (
    AttemptPart,
    Draw,
    JudgingQuestion,
    balanced,
    once_per_book,
    strata,
    verb,
)
from turnwise.envs.judging.knobs import JudgingKnobs
from turnwise.envs.judging.recorded import EpisodeBook, Recorded
from turnwise.envs.judging.render import beside, block, played

STRONGEST = 3
_NAMES = "ABCDEFGH"
MOST = len(_NAMES)
"""Attempts that can be scored at a time."""
_TRIES = 300


@once_per_book
def _attempts(book: EpisodeBook) -> Mapping[Hashable, Mapping[bool, Sequence[AttemptPart]]]:
    return like_attempts(book.episodes)


def like_attempts(episodes: Sequence[Recorded]) -> Mapping[Hashable, Mapping[bool, Sequence[AttemptPart]]]:
    """Solved attempts, and the unsolved up to each turn, by what may not tell them apart: at none of these was the task solved."""
    solved = [(AttemptPart(one, len(one.turns)), True) for one in episodes if one.solved]
    failed = [
        (AttemptPart(one, k), False)
        for one in episodes
        if not one.solved
        for k in range(1, len(one.turns) + 1)
    ]
    return strata([*solved, *failed])


def verdict(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask whether the last act solves the task: yes as often as no at each length and each last verb."""
    solved = rng.random() < 0.5
    part = balanced(rng, solved, _attempts(book))
    if part is None:
        return None
    return solves(part, solved)


def solves(part: AttemptPart, solved: bool) -> JudgingQuestion:
    """Ask whether the last act of this part solves the task."""
    return _asked(played(part), solved)


def _asked(shown: str, solved: bool) -> JudgingQuestion:
    text = f"{shown}\n\nDoes the last act solve the task ? yes or no"
    return JudgingQuestion(text, "yes" if solved else "no", solved, ("yes", "no"))


@once_per_book
def _begun(book: EpisodeBook) -> Sequence[Recorded]:
    """Solved attempts that go on after their first sentence."""
    return [
        one
        for one in book.episodes
        if one.solved and (begun := one.turns[0].begun) and (begun != one.turns[0].act or len(one.turns) > 1)
    ]


def cut(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask whether the first sentence of a solved attempt solves the task, which it never does (Master-RM, Zhao et al. 2025)."""
    if not (solved := _begun(book)):
        return None
    one = rng.choice(solved)
    return _asked(block(one, 0, one.turns[0].begun), solved=False)


def score(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask how sure it is that the last act solves the task; paid 1 − (said − true)²."""
    solved = rng.random() < 0.5
    part = balanced(rng, solved, _attempts(book))
    if part is None:
        return None
    text = f"{played(part)}\n\nHow sure is it that the last act solves the task ? a number from 0 to 1"
    return JudgingQuestion(text, str(int(solved)), float(solved), ("0", "0.5", "1"))


@once_per_book
def _mixed(book: EpisodeBook) -> Sequence[tuple[Sequence[Recorded], Sequence[Recorded]]]:
    """Of each task that has both: attempts that were paid the most, and those that were paid less."""
    found: list[tuple[Sequence[Recorded], Sequence[Recorded]]] = []
    for attempts in book.by_task.values():
        most = max(one.reward for one in attempts)
        best, rest = [[one for one in attempts if (one.reward == most) is side] for side in (True, False)]
        if best and rest:
            found.append((best, rest))
    return found


def _cut(rng: Random, one: Recorded, last: str) -> AttemptPart | None:
    """An unsolved attempt up to one of its acts with this verb; whole where it was paid a part."""
    if one.reward > 0:
        return AttemptPart(one, len(one.turns))
    places = [k for k, turn in enumerate(one.turns, 1) if verb(turn.act) == last]
    return AttemptPart(one, rng.choice(places)) if places else None


def _couple(rng: Random, book: EpisodeBook, longer_is_better: bool) -> tuple[AttemptPart, AttemptPart] | None:
    """The better and the worse of two attempts at a task, of which the better is the longer, or the shorter."""
    if not (tasks := _mixed(book)):
        return None
    best, rest = rng.choice(tasks)
    good = AttemptPart(one := rng.choice(best), len(one.turns))
    bad = _cut(rng, rng.choice(rest), verb(good.act))
    if bad is None or bad.shared != good.shared or bad.length == good.length:
        return None
    return (good, bad) if (good.length > bad.length) == longer_is_better else None


def _couples(rng: Random, book: EpisodeBook) -> tuple[AttemptPart, AttemptPart] | None:
    """A couple; which of the two is to be longer is settled before any is drawn, so that length says nothing."""
    longer_is_better = rng.random() < 0.5
    return next(filter(None, (_couple(rng, book, longer_is_better) for _ in range(_TRIES))), None)


def pair(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask which of two attempts at a task is better, A or B: each as often first, and as often the longer."""
    found = _couples(rng, book)
    if found is None:
        return None
    first = rng.random() < 0.5
    text = f"{beside(found if first else found[::-1], 'AB')}\n\nWhich does the task better ? A or B"
    return JudgingQuestion(text, "A" if first else "B", "A" if first else "B", ("A", "B"))


def strength(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask by how much A is better than B, from −3 to 3: three times the difference of what was paid, rounded up (ours)."""
    found = _couples(rng, book)
    if found is None:
        return None
    gap = math.ceil(min(1.0, found[0].episode.reward - found[1].episode.reward) * STRONGEST)
    gap, shown = (gap, found) if rng.random() < 0.5 else (-gap, found[::-1])
    text = f"{beside(shown, 'AB')}\n\nHow much better is A than B ? a whole number from -3 to 3"
    return JudgingQuestion(text, str(gap), gap, tuple(str(n) for n in range(-STRONGEST, STRONGEST + 1)))


def rank(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask for a score of each of several attempts at a task; paid Kendall's τ with what they were paid.

    The longest is of the best as often as chance has it, which is settled before any is drawn.
    """
    longest_is_best = rng.random() < 1 / knobs.candidates
    for _ in range(_TRIES):
        found = _several(rng, book, knobs.candidates)
        if found and (max(found, key=lambda part: part.length) is found[0]) == longest_is_best:
            break
    else:
        return None
    shown = rng.sample(found, len(found))
    truth = [part.episode.reward for part in shown]
    places = sorted(set(truth))
    answer = " ".join(str(places.index(paid)) for paid in truth)
    some = permutations(range(len(shown))) if len(shown) == 3 else product((0, 1), repeat=len(shown))
    return JudgingQuestion(
        how_well(shown), answer, truth, (answer, *(" ".join(map(str, one)) for one in some))
    )


def how_well(parts: Sequence[AttemptPart]) -> str:
    """The question how well each of several attempts does its task."""
    count = f"{len(parts)} numbers" if len(parts) > 1 else "a number"
    return f"{beside(parts, _NAMES[: len(parts)])}\n\nHow well does each do the task ? {count} from 0 to 10"


def _several(rng: Random, book: EpisodeBook, count: int) -> list[AttemptPart] | None:
    """One of the best attempts at a task, first, and worse ones, each up to an act like its last."""
    if not (tasks := _mixed(book)):
        return None
    best, rest = rng.choice(tasks)
    if len(rest) < count - 1:
        return None
    good = AttemptPart(one := rng.choice(best), len(one.turns))
    last = verb(good.act)
    worse = [_cut(rng, other, last) for other in rng.sample(rest, count - 1)]
    return [good, *(part for part in worse if part)] if all(worse) else None


DRAWS: dict[str, Draw] = {
    "verdict": verdict,
    "cut": cut,
    "score": score,
    "pair": pair,
    "strength": strength,
    "rank": rank,
}
