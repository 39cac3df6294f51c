"""How near calls come to the wanted ones: ToolRL's reward and its parts (papers/credit.md no. 41)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from turnwise.envs.functioncall.values import same
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


def matches(called: ToolCall, wanted: ToolCall) -> bool:
    """Exactly the wanted call: its name, the same arguments, equal in value and type."""
    same_keys = called.arguments.keys() == wanted.arguments.keys()
    return called.name == wanted.name and same_keys and _equal(called, wanted) == len(wanted.arguments)


def _equal(called: ToolCall, wanted: ToolCall) -> int:
    """How many of the wanted arguments have the wanted value."""
    given: Callable[[str], bool] = called.arguments.__contains__
    return sum(given(key) and same(called.arguments[key], value) for key, value in wanted.arguments.items())


def _overlap(first: Sequence[Item], second: Sequence[Item]) -> float:
    if not first and not second:
        return 1.0
    shared = sum((Counter(first) & Counter(second)).values())
    return shared / (len(first) + len(second) - shared)
