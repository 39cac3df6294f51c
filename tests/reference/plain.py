"""Sums, means and deviations of plain lists, and the list of all references.

A reference is written from the formula that the part's docstring and paper give, in loops over plain numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isclose, sqrt
from typing import Any, NamedTuple

from ragged import Ragged, Rows

from turnwise.errors import RecipeError, TurnwiseError

References = dict[tuple[str, str], "Reference"]
REFERENCES: References = {}
WITHOUT: dict[tuple[str, str], str] = {}
"""Parts that are compared with nothing, and why."""
CLOSE = 1e-8

Law = Callable[[str, Callable[..., Any], Callable[..., Any]], None]
"""(name, part, formula) → nothing, or an AssertionError where the part does otherwise."""


class Refused(Exception):
    """A formula raises it where the part must refuse its options with a RecipeError."""


class Reference(NamedTuple):
    """A part's formula, and for each of its options the values that are tried beside the default.

    ``also`` are options that are tried together; ``law`` stands for that of the kind.
    """

    formula: Callable[..., Any]
    options: Mapping[str, Sequence[Any]]
    tokens: str = ""
    also: Sequence[Mapping[str, Any]] = ()
    law: Law | None = None


def reference(
    kind: str,
    name: str,
    *,
    tokens: str = "",
    also: Sequence[Mapping[str, Any]] = (),
    law: Law | None = None,
    **options: Sequence[Any],
) -> Callable[..., Any]:
    """Register the formula of a part; ``tokens`` says of a shape whether it takes or gives advantages of tokens."""

    def kept(formula: Callable[..., Any]) -> Callable[..., Any]:
        REFERENCES[kind, name] = Reference(formula, options, tokens, also, law)
        return formula

    return kept


def agree(found: float, expected: float, said: str) -> None:
    assert isclose(found, expected, rel_tol=CLOSE, abs_tol=CLOSE), f"{said}: {found} is not {expected}"


def refuses(do: Callable[[], object], error: type[TurnwiseError] = RecipeError) -> str:
    """What is said where it is refused; an AssertionError (which pytest's own is not) where it is not."""
    try:
        do()
    except error as why:
        return str(why)
    raise AssertionError("It is not refused.")


def mean(x: Sequence[float]) -> float:
    return sum(x) / len(x)


def deviation(x: Sequence[float]) -> float:
    """With n − 1; 0 for a single number."""
    return sqrt(sum((a - mean(x)) ** 2 for a in x) / (len(x) - 1)) if len(x) > 1 else 0.0


def z(a: float, among: Sequence[float], eps: float = 1e-6) -> float:
    return (a - mean(among)) / (deviation(among) + eps)


def to_go(row: Sequence[float], discount: float = 1.0) -> list[float]:
    """G_k = Σ_{l≥k} γ^{l−k} r_l."""
    return [sum(discount ** (m - k) * row[m] for m in range(k, len(row))) for k in range(len(row))]


def acts_between(r: Ragged, i: int, k: int, m: int) -> int:
    """Turns k to m − 1 of trajectory i that are not written for later contexts: those alone take time."""
    return sum(not (r.memory and r.memory[i][l]) for l in range(k, m))


def discounted(r: Ragged, i: int, row: Sequence[float], discount: float) -> list[float]:
    """G_k = Σ_{l≥k} γ^(acts from k to l) row_l."""
    turns = range(len(row))
    return [sum(discount ** acts_between(r, i, k, l) * row[l] for l in turns if l >= k) for k in turns]


def each_discounted(r: Ragged, discount: float) -> Rows:
    """The rewards of every trajectory, summed from each turn on."""
    return [discounted(r, i, row, discount) for i, row in enumerate(r.rewards)]


def over_turns(r: Ragged, of: Callable[[int], float]) -> Rows:
    """One number per trajectory, given to each of its turns."""
    return [[of(i)] * len(row) for i, row in enumerate(r.rewards)]


def each_turn(r: Ragged, of: Callable[[int, int], float]) -> Rows:
    return [[of(i, k) for k in range(len(row))] for i, row in enumerate(r.rewards)]


def others(r: Ragged, i: int) -> list[int]:
    return [j for j in r.peers(i) if j != i]


def against_peers(r: Ragged, x: Rows) -> Rows:
    """x summed from each turn on, minus the mean of the peers' sums from that turn on (0 where one has ended)."""
    sums = [to_go(row) for row in x]

    def of(i: int, k: int) -> float:
        peers = others(r, i)
        return sums[i][k] - mean([sums[j][k] if k < len(sums[j]) else 0.0 for j in peers]) if peers else 0.0

    return each_turn(r, of)
