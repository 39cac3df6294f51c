"""Sorting and filtering of results, where a catalogue knows facts about its products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from turnwise.envs.shop.conditions import Condition, Facts

_SORT = "sort by "
_FREQUENT = 5  # values of a word by which results can be filtered: the most frequent ones
_WORDS = ("brand", "material")
_RATED = {
    "sort by price": ("price", 1),
    "sort by rating": ("rating", -1),
    "sort by number of ratings": ("reviews", -1),
}
"""Sorts that there always are → the fact that decides, and whether the least (1) or the most (-1) of it comes first."""
_LEAST, _MOST = ", least first", ", most first"

FILTERS: Mapping[str, Condition] = {
    "under $25": Condition("price", "at most", 24.99),
    "under $50": Condition("price", "at most", 49.99),
    "under $100": Condition("price", "at most", 99.99),
    "4 stars and up": Condition("rating", "at least", 4.0),
}
"""Name of a button → what results that it keeps fulfil. Besides, there is one for each frequent brand and material."""


def sorts(name: str) -> bool:
    """Say whether a way to refine sorts; else it filters."""
    return name.startswith(_SORT)


def refined(
    facts: Callable[[int], Facts], found: Sequence[int], sort: str, only: Sequence[str]
) -> tuple[int, ...]:
    """Results that all filters keep, sorted; equal ones stay in the order of the search.

    Of several brands, or several materials, one is enough.
    """
    groups = [list(names) for _, names in groupby(sorted(only, key=_group), key=_group)]
    kept = [item for item in found if all(any(_keeps(name, facts(item)) for name in each) for each in groups)]
    if not sort:
        return tuple(kept)
    fact, sign = _decides(sort)
    return tuple(sorted(kept, key=lambda item: sign * _number(facts(item), fact)))


def refinements(facts: Callable[[int], Facts], found: Sequence[int]) -> list[str]:
    """The names of all ways to sort and filter these results: by each number that all of them have, too."""
    if not found:
        return []
    told = [facts(item) for item in found]
    named = {fact for fact, _ in _RATED.values()}
    numbers = [
        fact
        for fact in told[0]
        if fact not in named and all(isinstance(each.get(fact), float) for each in told)
    ]
    both = [f"{_SORT}{fact}{end}" for fact in numbers for end in (_LEAST, _MOST)]
    values = [f"{fact}: {value}" for fact in _WORDS for value in _frequent(str(each[fact]) for each in told)]
    return [*_RATED, *both, *FILTERS, *values]


def _frequent(values: Iterable[str]) -> list[str]:
    counted = Counter(value.lower() for value in values)
    return sorted(sorted(counted, key=lambda value: (-counted[value], value))[:_FREQUENT])


def _decides(sort: str) -> tuple[str, int]:
    """The fact by which a sort goes, and its sign."""
    if sort in _RATED:
        return _RATED[sort]
    fact = sort.removeprefix(_SORT)
    return fact.removesuffix(_LEAST).removesuffix(_MOST), 1 if fact.endswith(_LEAST) else -1


def _number(facts: Facts, fact: str) -> float:
    value = facts[fact]
    assert isinstance(value, float)
    return value


def _group(name: str) -> str:
    """Filters of one group are alternatives; one of FILTERS is a group by itself."""
    return name if name in FILTERS else name.partition(": ")[0]


def _keeps(name: str, facts: Facts) -> bool:
    if name in FILTERS:
        return FILTERS[name].holds(facts)
    fact, _, value = name.partition(": ")
    return str(facts[fact]).lower() == value
