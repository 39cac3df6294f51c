"""Invented names that read as names: towns, first names and surnames, put together from pieces.

Every number is another name. The pairs of pieces are dealt to the splits, surnames too, so that no name of a test world
was met in training.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from turnwise.data_file import data_file

Part = Literal["train", "dev", "test"]
"""The part of the names that a world takes."""

_PARTS: dict[str, range] = {"train": range(8), "dev": range(8, 9), "test": range(9, 10)}


@dataclass(frozen=True)
class NamePieces:
    """Pieces that names are put together from (vocabulary.yaml)."""

    stems: tuple[str, ...]
    ends: tuple[str, ...]
    middles: tuple[str, ...]
    before: tuple[str, ...]
    heads: tuple[str, ...]
    tails: tuple[str, ...]
    families: tuple[str, ...]
    family_ends: tuple[str, ...]
    professions: tuple[str, ...]
    adjectives: tuple[str, ...]
    nouns: tuple[str, ...]
    suffixes: Mapping[str, tuple[str, ...]]

    @functools.cached_property
    def firsts(self) -> tuple[str, ...]:
        return tuple(head + tail for head in self.heads for tail in self.tails)

    @functools.cached_property
    def lasts(self) -> tuple[str, ...]:
        return tuple(family + end for family in self.families for end in self.family_ends)


@functools.cache
def name_pieces() -> NamePieces:
    """Return what names are put together from."""
    return data_file("turnwise.envs.search", "vocabulary", NamePieces)


def _dealt(count: int, part: Part) -> list[int]:
    """The numbers below ``count`` that belong to a part: eight tenths, one tenth, one tenth."""
    return [number for number in range(count) if number * 7919 % 9973 % 10 in _PARTS[part]]


class WorldNames:
    """The names of a world. Two worlds of different seeds name the same number differently."""

    def __init__(self, rng: Random, people: int, part: Part = "train") -> None:
        self._pieces = pieces = name_pieces()
        self._pairs = _dealt(len(pieces.stems) * len(pieces.ends), part)
        self._given = list(pieces.firsts)
        self._family = [pieces.lasts[n] for n in _dealt(len(pieces.lasts), part)]
        for names in (self._pairs, self._given, self._family):
            rng.shuffle(names)
        self._firsts = min(len(pieces.firsts), max(4, math.isqrt(2 * people) + 1))
        self._people = self._firsts * (people // self._firsts + 1)
        self._step = _coprime(rng, self._people)

    def word(self, number: int) -> str:
        """The name of a place, another one for each number; the first few thousand are the plainest.

        Larger worlds have longer ones: Ashford, then Ashingford, then Port Ashford, then Ashford-on-Alder.
        """
        pieces, (level, at) = self._pieces, divmod(number, len(self._pairs))
        stem, end = divmod(self._pairs[at], len(pieces.ends))
        far, level = divmod(level, len(pieces.middles) * len(pieces.before))
        before, middle = divmod(level, len(pieces.middles))
        name = f"{pieces.before[before]}{pieces.stems[stem]}{pieces.middles[middle]}{pieces.ends[end]}"
        return f"{name}-on-{pieces.stems[(far - 1) % len(pieces.stems)]}" if far else name

    def person(self, number: int) -> str:
        """A first and a last name; many people share one of the two."""
        last, first = divmod(number * self._step % self._people, self._firsts)
        double, last = divmod(last, len(self._family))
        family = f"{self._family[double - 1]}-{self._family[last]}" if double else self._family[last]
        return f"{self._given[first]} {family}"

    def thing(self, kind: str, number: int, dice: int) -> str:
        """The name of what is no person."""
        word, pieces = self.word(number), self._pieces
        if kind in ("book", "film"):
            adjective = pieces.adjectives[dice % len(pieces.adjectives)]
            return f"The {adjective} {pieces.nouns[dice // 32 % len(pieces.nouns)]} of {word}"
        suffixes = pieces.suffixes.get(kind)
        return f"{word} {suffixes[dice % len(suffixes)]}" if suffixes else word


def _coprime(rng: Random, modulus: int) -> int:
    while math.gcd(step := rng.randrange(1, max(2, modulus)), modulus) != 1:
        pass
    return step
