"""Closeness of the model's calls to the expected ones: ToolRL's reward (Qian et al. 2025, arXiv 2504.13958)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall

Item = TypeVar("Item")
_REWARDED = 6.0
_OFFSET = 3.0


class Nearness(NamedTuple):
    """Parts of ToolRL's correctness, each scaled so that all three sum to 6 for the wanted calls themselves."""

    names: float = 0.0
    parameters: float = 0.0
    values: float = 0.0

    @property
    def correctness(self) -> float:
        """From −3 (nothing right) to 3."""
        return sum(self) - _OFFSET


def nearness(called: Sequence[ToolCall], wanted: Sequence[ToolCall]) -> Nearness:
    """Compare calls with the wanted ones; the order of either is free.

    S = J(names) + Σ over wanted calls of the best J(parameter names) + equal values of an unused call of the
    same name; the greatest S is 1 + Σ(1 + parameters). J is |∩| / |∪| of multisets. Without wanted calls all
    parts are 0.

    >>> wanted = [ToolCall("search", {"q": "x", "k": 3})]
    >>> nearness([ToolCall("search", {"q": "x", "k": 5})], wanted).correctness
    1.5
    """
    if not wanted:
        return Nearness()
    names = _overlap([one.name for one in called], [one.name for one in wanted])
    parameters = values = 0.0
    left = list(called)
    for want in wanted:
        scored = [
            (_overlap([*one.arguments], [*want.arguments]), _equal(one, want), one)
            for one in left
            if one.name == want.name
        ]
        if scored:
            keys, equal, one = max(scored, key=lambda score: score[0] + score[1])
            parameters, values = parameters + keys, values + equal
            left.remove(one)
    scale = _REWARDED / (1 + sum(1 + len(want.arguments) for want in wanted))
    return Nearness(names * scale, parameters * scale, values * scale)


def _equal(called: ToolCall, wanted: ToolCall) -> int:
    """Count the wanted arguments that have the wanted value."""
    given: Callable[[str], bool] = called.arguments.__contains__
    return sum(given(key) and same(called.arguments[key], value) for key, value in wanted.arguments.items())


def _overlap(first: Sequence[Item], second: Sequence[Item]) -> float:
    if not first and not second:
        return 1.0
    shared = sum((Counter(first) & Counter(second)).values())
    return shared / (len(first) + len(second) - shared)


def same(first: Json, second: Json) -> bool:
    """Equal in value and in type: 1 is 1.0, but neither is true or "1"; the order in lists is free.

    >>> same(1, 1.0), same(1, True), same(1, "1"), same(["a", "b"], ["b", "a"])
    (True, False, False, True)
    """
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and sorted(map(repr, first)) == sorted(map(repr, second))
    if isinstance(first, str) and isinstance(second, str):
        return " ".join(first.split()) == " ".join(second.split())
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    numbers = isinstance(first, (int, float)) and isinstance(second, (int, float))
    return first == second and (numbers or type(first) is type(second))
