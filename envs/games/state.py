"""Positions of the games: immutable values."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

_SPACED = re.compile(r" ([.,:?])(?=\s|$)")
_BEGINS = re.compile(r"(?:^|(?<=[.?] ))[a-z](?=.*[.:?]$)", re.MULTILINE)


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


def styled(text: str, full: bool) -> str:
    """A text in the style of its task: full sentences have no space before their signs. Rows of boards are none.

    >>> styled("other has king . you lose 2 .\\nx _ o ", full=True)
    'Other has king. You lose 2.\\nx _ o '
    """
    return _BEGINS.sub(lambda found: found[0].upper(), _SPACED.sub(r"\1", text)) if full else text
