"""Positions of the games: immutable values."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Asked(NamedTuple):
    """A question and its answer."""

    query: str
    answer: str


History: TypeAlias = tuple[Asked, ...]


class Stones(NamedTuple):
    """A position as its mover sees it, and whose move it is."""

    mine: int
    theirs: int
    seat: int


Hands: TypeAlias = tuple[tuple[str, ...], ...]


class PokerMatch(NamedTuple):
    """The moves of every hand so far; the last one is being played, unless the match is over."""

    hands: Hands

    @property
    def history(self) -> tuple[str, ...]:
        return self.hands[-1]
