"""Parts of questions, and draws that leave nothing to be read off lengths, places or last words."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeAlias, TypeVar

from turnwise.envs.judging.knobs import JudgingKnobs
from turnwise.envs.judging.recorded import EpisodeBook, Recorded
from turnwise.tasks.core import Json

Item = TypeVar("Item")
_WORD = re.compile(r"\w+")


class JudgingQuestion(NamedTuple):
    """A question: its text, the answer that is right, what grading needs, and answers that might be given."""

    text: str
    answer: str
    truth: Json
    offers: tuple[str, ...]


class AttemptPart(NamedTuple):
    """An episode up to and with one of its turns, from 1; what was seen after that turn is not part of it."""

    episode: Recorded
    turns: int

    @property
    def length(self) -> int:
        """The characters of what was seen and done."""
        return sum(len(turn.seen) + len(turn.act) for turn in self.episode.turns[: self.turns])

    @property
    def act(self) -> str:
        """The last act."""
        return self.episode.turns[self.turns - 1].act

    @property
    def shared(self) -> int:
        """The words of the last act, but for its verb, that the task's first line has too."""
        return len(set(words(self.act)[1:]) & set(words(self.episode.turns[0].seen.partition("\n")[0])))


Draw: TypeAlias = Callable[[Random, EpisodeBook, JudgingKnobs], "JudgingQuestion | None"]
"""Makes a question of a book; None: not with this chance."""


def words(text: str) -> list[str]:
    """The words of a text, in lower case.

    >>> words("Put the mug_2 in [sink 1].")
    ['put', 'the', 'mug_2', 'in', 'sink', '1']
    """
    return _WORD.findall(text.lower())


def verb(act: str) -> str:
    """The first word of an act; empty where it has none."""
    return next(iter(words(act)), "")


def stratum(part: AttemptPart) -> Hashable:
    """Return what may not tell right from wrong: the environment, the number of turns, the last act's verb, and its words that the task has."""
    return part.episode.env, part.turns, verb(part.act), part.shared


def strata(
    parts: Iterable[tuple[AttemptPart, bool]],
) -> Mapping[Hashable, Mapping[bool, Sequence[AttemptPart]]]:
    """Parts by stratum and label, of those strata that have both labels.

    >>> from turnwise.envs.judging.recorded import RecordedTurn
    >>> episode = Recorded("e", "t", (RecordedTurn("a", "go x", None), RecordedTurn("b", "put y", None)), "", 0.0, False)
    >>> found = strata([(AttemptPart(episode, 1), True), (AttemptPart(episode, 1), False), (AttemptPart(episode, 2), True)])
    >>> list(found), [len(found["e", 1, "go", 0][label]) for label in (False, True)]
    ([('e', 1, 'go', 0)], [1, 1])
    """
    found: defaultdict[Hashable, dict[bool, list[AttemptPart]]] = defaultdict(lambda: {False: [], True: []})
    for part, label in parts:
        found[stratum(part)][label].append(part)
    return {key: sides for key, sides in found.items() if all(sides.values())}


def balanced(
    rng: Random, label: bool, found: Mapping[Hashable, Mapping[bool, Sequence[AttemptPart]]]
) -> AttemptPart | None:
    """A part of this label, out of a stratum that is drawn without looking at it; None where no stratum has both."""
    keys = list(found)
    if not keys:
        return None
    weights = [min(len(side) for side in found[key].values()) for key in keys]
    return rng.choice(found[rng.choices(keys, weights)[0]][label])


def one_of_each(rng: Random, groups: Mapping[Hashable, Sequence[Item]]) -> Item:
    """A member of a group that is drawn first, so that large groups are not drawn more often."""
    return rng.choice(groups[rng.choice(list(groups))])


def once_per_book(make: Callable[[EpisodeBook], Item]) -> Callable[[EpisodeBook], Item]:
    """Keep what is made of a book with the book: they are few, and their draws many."""
    made: dict[int, tuple[EpisodeBook, Item]] = {}

    @functools.wraps(make)
    def kept(book: EpisodeBook) -> Item:
        found = made.get(id(book))
        if found is None or found[0] is not book:
            found = made[id(book)] = (book, make(book))
        return found[1]

    return kept
