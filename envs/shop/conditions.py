"""Demands of a request on a purchase, as data: exact, and the same in every process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, cast

from turnwise.tasks.core import Json

Fact: TypeAlias = float | str | frozenset[str]
"""A number, a word, or a set of words that are true of a product."""
Facts: TypeAlias = Mapping[str, Fact]
Test: TypeAlias = Literal["at least", "at most", "is", "is not", "all", "any", "none"]


class Condition(NamedTuple):
    """A test of one fact. ``value`` is a number for the first two tests, else words.

    >>> Condition("weight", "at most", 500.0).holds({"weight": 420.0})
    True
    >>> Condition("features", "none", ("hood",)).holds({"features": frozenset({"hood", "zip"})})
    False
    """

    fact: str
    test: Test
    value: float | tuple[str, ...]

    def holds(self, facts: Facts) -> bool:
        """Say whether a product with these facts passes; never where the fact is unknown."""
        known = facts.get(self.fact)
        match known:
            case None:
                return False
            case str():
                return (known in self._words) == (self.test == "is")
            case frozenset():
                shared = len(known & {*self._words})
                return {"all": shared == len(self._words), "any": shared > 0, "none": shared == 0}[self.test]
            case _:
                limit = cast("float", self.value)
                return known >= limit - _SLACK if self.test == "at least" else known <= limit + _SLACK

    @property
    def _words(self) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self.value)

    def to_json(self) -> Json:
        return [
            self.fact,
            self.test,
            list(self.value) if isinstance(self.value, tuple) else float(self.value),
        ]

    @staticmethod
    def from_json(data: Sequence[Json]) -> Condition:
        fact, test, value = data
        return Condition(fact, test, tuple(value) if isinstance(value, list) else float(value))


_SLACK = 1e-6  # of units that were converted
