"""A programming problem: a statement, visible test cases and hidden ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, cast

from turnwise.envs.code.kernel import decode, encode
from turnwise.tasks.core import Json

Mode: TypeAlias = Literal["calls", "stdin", "expression"]
Compare: TypeAlias = Literal["exact", "close", "text", "equal", "evalplus", "lines", "list"]


class CodeCase(NamedTuple):
    """One test: what goes in (a tuple of arguments, or a text for stdin) and what must come out."""

    given: object
    expected: object


class LargeTest(NamedTuple):
    """A test whose input is made when it is needed: of which family of contest problems, and from which seed."""

    family: str
    params: Mapping[str, Json]
    seed: str


@dataclass(frozen=True)
class CodeProblem:
    """A programming problem. ``solution`` is the source of a right program, empty where none is known.

    ``mode`` says how programs run: ``calls`` calls the function ``entry``, ``stdin`` runs the whole program,
    ``expression`` evaluates one expression of a small language (:mod:`turnwise.envs.code.expression`).

    ``prefix`` and ``suffix`` stand before and behind the agent's program when it is judged. ``by_reference``: what is expected is
    what the solution answers.
    """

    statement: str
    entry: str
    visible: tuple[CodeCase, ...]
    hidden: tuple[CodeCase, ...]
    solution: str = ""
    mode: Mode = "calls"
    compare: Compare = "exact"
    prefix: str = ""
    suffix: str = ""
    by_reference: bool = False
    large: tuple[LargeTest, ...] = ()  # run after the hidden tests, all within a time of their own

    def to_json(self) -> dict[str, Json]:
        """As JSON, without the solution (a task keeps it as its gold)."""
        return {
            "statement": self.statement,
            "entry": self.entry,
            "visible": [[encode(case.given), encode(case.expected)] for case in self.visible],
            "hidden": [[encode(case.given), encode(case.expected)] for case in self.hidden],
            "mode": self.mode,
            "compare": self.compare,
            **{
                name: getattr(self, name)
                for name in ("prefix", "suffix", "by_reference")
                if getattr(self, name)
            },
            **({"large": [list(test) for test in self.large]} if self.large else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, Json], solution: str = "") -> CodeProblem:
        """The problem that :meth:`to_json` described."""
        return CodeProblem(
            data["statement"],
            data["entry"],
            tuple(CodeCase(decode(given), decode(expected)) for given, expected in data["visible"]),
            tuple(CodeCase(decode(given), decode(expected)) for given, expected in data["hidden"]),
            solution,
            data["mode"],
            data["compare"],
            data.get("prefix", ""),
            data.get("suffix", ""),
            data.get("by_reference", False),
            tuple(LargeTest(*test) for test in data.get("large", ())),
        )


def same(left: object, right: object, compare: Compare = "exact") -> bool:
    """Say whether two plain values are equal, types included: ``True`` is not ``1``, nor ``[1]`` ``(1,)``.

    ``close`` lets floats differ by a millionth; ``text`` compares words line by line.

    >>> same([1, 2.0], [1, 2.0]), same(1, True), same([1], (1,)), same(0.1 + 0.2, 0.3, "close")
    (True, False, False, True)
    """
    if compare == "text":
        return isinstance(left, str) and isinstance(right, str) and _words(left) == _words(right)
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return _same_float(left, cast(float, right), compare)
    if isinstance(left, list | tuple):
        items, others = cast("list[object]", left), cast("list[object]", right)
        pairs = zip(items, others, strict=False)
        return len(items) == len(others) and all(same(a, b, compare) for a, b in pairs)
    if isinstance(left, dict):
        mine, theirs = cast("dict[object, object]", left), cast("dict[object, object]", right)
        return _same_keys(mine, theirs) and all(same(mine[key], theirs[key], compare) for key in mine)
    if isinstance(left, set | frozenset):
        return left == right and _same_keys(
            dict.fromkeys(cast("set[object]", left)), dict.fromkeys(cast("set[object]", right))
        )
    return left == right


def _same_float(left: float, right: float, compare: Compare) -> bool:
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or (compare == "close" and math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-9))


def _same_keys(left: Mapping[object, object], right: Mapping[object, object]) -> bool:
    """Equal keys of equal types: ``{1: x}`` is not ``{True: x}``."""
    if len(left) != len(right) or set(left) != set(right):
        return False
    shape: Callable[[object], str] = repr
    return sorted(map(shape, map(_typed, left))) == sorted(map(shape, map(_typed, right)))


def _typed(value: object) -> object:
    """A value with the types of all that is in it."""
    if isinstance(value, tuple):
        return tuple(_typed(item) for item in cast("tuple[object, ...]", value))
    if isinstance(value, frozenset):
        return sorted(repr(_typed(item)) for item in cast("frozenset[object]", value))
    return type(value).__name__, value


def _words(text: str) -> list[list[str]]:
    lines = [line.split() for line in text.rstrip().splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def function_name(problem: CodeProblem) -> str:
    return problem.entry.rpartition(".")[2]
