"""Questions about what was hidden: an act between two observations, acts of a success, the order of its turns, a reply.

Their answers are in the log itself, so that any episode teaches something, whoever played it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from random import Random

from turnwise.envs.judging.drawing import (
    AttemptPart,
    Draw,
    JudgingQuestion,
    once_per_book,
    one_of_each,
    verb,
    words,
)
from turnwise.envs.judging.knobs import JudgingKnobs
from turnwise.envs.judging.recorded import EpisodeBook, Recorded
from turnwise.envs.judging.render import block, played

_OFFERED = 4
_LONGEST_ORDER = 6
_SEGMENT = re.compile(r"[^.!?\n]*[.!?\n]?")


@once_per_book
def _changes(book: EpisodeBook) -> Mapping[Hashable, Sequence[tuple[Recorded, int]]]:
    """Turns that changed what is seen and that no other act would have changed so, by environment and verb."""
    acts: defaultdict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for one in book.episodes:
        for k, turn in enumerate(one.turns):
            acts[one.env, turn.seen, one.seen_after(k)].add(tuple(words(turn.act)))
    found: defaultdict[Hashable, list[tuple[Recorded, int]]] = defaultdict(list)
    for one in book.episodes:
        for k, turn in enumerate(one.turns):
            after = one.seen_after(k)
            if after and after != turn.seen and len(acts[one.env, turn.seen, after]) == 1:
                found[one.env, verb(turn.act)].append((one, k))
    return dict(found)


def inverse(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask for the act between two observations: each verb as often as the others."""
    if not (found := _changes(book)):
        return None
    one, k = one_of_each(rng, found)
    act = one.turns[k].act
    start = f"{one.turns[0].seen}\n\n" if k else ""  # without it a change of one split may be one of another
    text = (
        f"{start}before :\n{one.turns[k].seen}\n\nafter :\n{one.seen_after(k)}\n\nWhich act was in between ?"
    )
    return JudgingQuestion(text, act, act, _offered(rng, act, [turn.act for turn in one.turns]))


def _offered(rng: Random, right: str, others: Sequence[str]) -> tuple[str, ...]:
    distinct = sorted({one for one in others if words(one) != words(right)})
    return (right, *rng.sample(distinct, min(_OFFERED - 1, len(distinct))))


@once_per_book
def _solved(book: EpisodeBook) -> Mapping[Hashable, Sequence[Recorded]]:
    """Solved attempts of two turns or more, by environment and length."""
    found: defaultdict[Hashable, list[Recorded]] = defaultdict(list)
    for one in book.episodes:
        if one.solved and len(one.turns) > 1:
            found[one.env, len(one.turns)].append(one)
    return dict(found)


def fill(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask for the acts that were hidden in a solved attempt; paid the share of them that is found."""
    if not (found := _solved(book)):
        return None
    one = one_of_each(rng, found)
    places = sorted(rng.sample(range(len(one.turns)), min(knobs.hidden, len(one.turns) - 1)))
    names = {k: f"( {n} )" for n, k in enumerate(places, 1)}
    shown = "\n".join(block(one, k, names.get(k, "")) for k in range(len(one.turns)))
    acts = [one.turns[k].act for k in places]
    asked = " | ".join(names.values())
    text = f"{shown}\n\nWhich acts are missing ? {asked}"
    answer = " | ".join(acts)
    wrong = [
        " | ".join(rng.choices([turn.act for turn in one.turns], k=len(acts))) for _ in range(_OFFERED - 1)
    ]
    return JudgingQuestion(text, answer, acts, (answer, *wrong))


def order(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask for the order of the turns of a solved attempt; paid 1 − Σ|i − place| / ⌊n²/2⌋."""
    fits = {
        key: some
        for key, attempts in _solved(book).items()
        if (some := [one for one in attempts if 3 <= len(one.turns) <= _LONGEST_ORDER])
    }
    if not fits:
        return None
    one = one_of_each(rng, fits)
    blocks = [f"> {turn.act}\n{one.seen_after(k)}".rstrip() for k, turn in enumerate(one.turns)]
    blocks[-1] = f"> {one.turns[-1].act}"  # what was seen in the end would say that it is the end
    if len(set(blocks)) < len(blocks):
        return None
    mixed = rng.sample(range(len(blocks)), len(blocks))
    shown = "\n\n".join(f"{n} :\n{blocks[k]}" for n, k in enumerate(mixed, 1))
    right = [mixed.index(k) + 1 for k in range(len(blocks))]
    answer = " ".join(map(str, right))
    text = f"{one.turns[0].seen}\n\n{shown}\n\nIn what order were they ? numbers"
    others = [" ".join(map(str, rng.sample(right, len(right)))) for _ in range(_OFFERED - 1)]
    return JudgingQuestion(text, answer, right, (answer, *others))


@once_per_book
def _replies(book: EpisodeBook) -> Mapping[Hashable, Sequence[tuple[Recorded, int]]]:
    """Turns after which another was played, by environment and verb."""
    found: defaultdict[Hashable, list[tuple[Recorded, int]]] = defaultdict(list)
    for one in book.episodes:
        for k, turn in enumerate(one.turns[:-1]):
            if words(one.turns[k + 1].seen):
                found[one.env, verb(turn.act)].append((one, k))
    return dict(found)


def following(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask what was seen next: right where the answer begins as what was seen, and done, from there on does."""
    if not (found := _replies(book)):
        return None
    one, k = one_of_each(rng, found)
    goes_on = [
        one.turns[k + 1].seen,
        *(f"{turn.act} {one.seen_after(n)}" for n, turn in enumerate(one.turns) if n > k),
    ]
    text = f"{played(AttemptPart(one, k + 1))}\n\nWhat is seen next ?"
    return _reply(rng, text, one, k, " ".join(goes_on))


def middle(rng: Random, book: EpisodeBook, knobs: JudgingKnobs) -> JudgingQuestion | None:
    """Ask what was seen at a place of which both sides are shown."""
    if not (found := _replies(book)):
        return None
    one, k = one_of_each(rng, found)
    hidden = f"( hidden )\n{k + 2} > {one.turns[k + 1].act}"
    rest = "".join(f"\n{block(one, n)}" for n in range(k + 2, len(one.turns)))
    text = f"{played(AttemptPart(one, k + 1))}\n{hidden}{rest}\n\nWhat is hidden ?"
    return _reply(rng, text, one, k, one.turns[k + 1].seen)


def _reply(rng: Random, text: str, one: Recorded, k: int, reference: str) -> JudgingQuestion:
    """A question whose answer is a text that a reference begins with, at least its first sentence or line."""
    seen = one.turns[k + 1].seen
    least = next(len(found) for part in _SEGMENT.findall(seen) if (found := words(part)))
    truth = {"words": words(reference), "least": least}
    answer = " ".join(seen.split())
    others = [" ".join(turn.seen.split()) for turn in one.turns if turn.seen.strip()]
    return JudgingQuestion(text, answer, truth, _offered(rng, answer, others))


DRAWS: dict[str, Draw] = {
    "inverse": inverse,
    "fill": fill,
    "order": order,
    "next": following,
    "middle": middle,
}
