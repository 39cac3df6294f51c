"""Sorting and filtering of results, where a catalogue knows facts about its products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from turnwise.envs.shop.conditions import Condition, Facts

_BRANDS = 5  # that results can be filtered by: the most frequent ones
_BRAND = "brand: "


def _number(fact: str, sign: int = 1) -> Callable[[Facts], float]:
    def read(facts: Facts) -> float:
        value = facts[fact]
        assert isinstance(value, float)
        return sign * value

    return read


SORTS: Mapping[str, Callable[[Facts], float]] = {
    "sort by price": _number("price"),
    "sort by rating": _number("rating", -1),
    "sort by number of ratings": _number("reviews", -1),
}
"""Name of a button → the key by which results are sorted."""

FILTERS: Mapping[str, Condition] = {
    "under $25": Condition("price", "at most", 24.99),
    "under $50": Condition("price", "at most", 49.99),
    "under $100": Condition("price", "at most", 99.99),
    "4 stars and up": Condition("rating", "at least", 4.0),
}
"""Name of a button → what results that it keeps fulfil. Besides, there is one for each frequent brand."""


def refined(
    facts: Callable[[int], Facts], found: Sequence[int], sort: str, only: Sequence[str]
) -> tuple[int, ...]:
    """Results that all filters keep, sorted; equal ones stay in the order of the search."""
    kept = [item for item in found if all(_keeps(name, facts(item)) for name in only)]
    return tuple(sorted(kept, key=lambda item: SORTS[sort](facts(item)))) if sort else tuple(kept)


def refinements(facts: Callable[[int], Facts], found: Sequence[int]) -> list[str]:
    """The names of all ways to sort and filter these results."""
    brands = Counter(str(facts(item)["brand"]) for item in found)
    frequent = sorted(brands, key=lambda brand: (-brands[brand], brand))[:_BRANDS]
    return [*SORTS, *FILTERS, *(f"{_BRAND}{brand.lower()}" for brand in sorted(frequent))] if found else []


def _keeps(name: str, facts: Facts) -> bool:
    if name in FILTERS:
        return FILTERS[name].holds(facts)
    return str(facts["brand"]).lower() == name.removeprefix(_BRAND)
