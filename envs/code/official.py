"""Comparison of answers by the rules of published benchmarks, as their own programs compare.

``equal`` is Python's ``==`` (HumanEval, MBPP: ``1 == True`` and ``2 == 2.0``). ``evalplus`` is ``==``, or close where floats are
expected, with the exceptions that EvalPlus makes for single functions. ``lines`` is LiveCodeBench's comparison of printed text,
``list`` its ``==`` for functions, for which a tuple is a list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

_SETS = frozenset(
    (
        "similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum",
        "intersection_array", "find_dissimilar", "Diff",
    )
)  # fmt: skip
_NOT_NONE = frozenset(("check_str", "text_match_three", "text_starta_endb"))


def agrees(rule: str, entry: str, given: Any, expected: Any, value: Any) -> bool:
    """Say whether an answer ``value`` to ``given`` is right by a rule; what cannot be compared is wrong.

    >>> agrees("equal", "f", (), 1, True), agrees("evalplus", "f", (), 0.3, 0.1 + 0.2), agrees("evalplus", "f", (), [1.0], (1.0,))
    (True, True, False)
    """
    try:
        return RULES[rule](entry, given, expected, value)
    except (TypeError, ValueError, OverflowError, RecursionError, ArithmeticError):
        return False


def _equal(entry: str, given: Any, expected: Any, value: Any) -> bool:
    return bool(value == expected)


def _list(entry: str, given: Any, expected: Any, value: Any) -> bool:
    return bool((list(value) if isinstance(value, tuple) else value) == expected)


def _evalplus(entry: str, given: Any, expected: Any, value: Any) -> bool:
    """evalplus/eval/__init__.py (Liu et al. 2023), on plain values: absolute tolerance 1e-6 where floats are expected."""
    if entry == "find_zero":
        return abs(sum(factor * math.pow(value, power) for power, factor in enumerate(given[0]))) <= 1e-4
    if entry == "are_equivalent" or (entry == "sum_div" and value == 0):
        return True
    if entry in _SETS:
        return set(value) == set(expected)
    if entry in _NOT_NONE:
        return (value if isinstance(value, bool) else value is not None) == expected
    if value == expected:
        return True
    return _holds_floats(expected) and type(value) is type(expected) and _is_near(value, expected)


def _holds_floats(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def _is_near(value: Any, expected: Any) -> bool:
    if isinstance(expected, (list, tuple)):
        return len(value) == len(expected) and all(map(_is_near, value, expected))
    return value == expected or abs(value - expected) <= 1e-6 + 1e-7 * abs(expected)


def _lines(entry: str, given: Any, expected: Any, value: Any) -> bool:
    """Line by line without the blanks around; lines that differ may be the same numbers."""
    said, right = ([line.strip() for line in text.strip().split("\n")] for text in (value, expected))
    return len(said) == len(right) and all(
        a == b or (_numbers(a) is not None and _numbers(a) == _numbers(b))
        for a, b in zip(said, right, strict=True)
    )


def _numbers(line: str) -> list[Decimal] | None:
    try:
        return [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return None


RULES: Mapping[str, Callable[[str, Any, Any, Any], bool]] = {
    "equal": _equal, "evalplus": _evalplus, "lines": _lines, "list": _list,
}  # fmt: skip
