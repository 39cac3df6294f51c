"""Small triples by chance, of one or two acts on three digits or one number: what a small model learns to write, and is asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple

from turnwise.envs.code.kernel import encode
from turnwise.tasks.core import Json

Act = Callable[[Any], Any]
CHANGES: Mapping[str, Act] = {
    "x[::-1]": lambda x: x[::-1],
    "x + x": lambda x: x + x,
    "x[1:]": lambda x: x[1:],
    "x[:-1]": lambda x: x[:-1],
    "sorted(x)": sorted,
}
"""From a list to a list."""
ENDS: Mapping[str, Act] = {
    **CHANGES,
    "x[0]": lambda x: x[0],
    "x[-1]": lambda x: x[-1],
    "len(x)": len,
    "max(x)": max,
    "min(x)": min,
    "sum(x)": sum,
}
TWICE = 0.25
"""How often a list is changed once before."""
NUMBER = 0.2
"""How often the input is a number."""
_SIGNS: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda x, by: x + by,
    "-": lambda x, by: x - by,
    "*": lambda x, by: x * by,
}


class SmallTriple(NamedTuple):
    """A program, its arguments as Python writes them, and its output, encoded."""

    program: str
    given: str
    output: Json


def small_triple(rng: Random) -> SmallTriple:
    """A triple by chance.

    >>> small_triple(Random(2))
    SmallTriple(program='def f(x):\\n    return x[1:]', given='[0, 1, 1]', output=[1, 1])
    """
    if rng.random() < NUMBER:
        sign, x, by = rng.choice([*_SIGNS]), rng.randrange(10), rng.randrange(1, 10)
        return SmallTriple(f"def f(x):\n    return x {sign} {by}", repr(x), _SIGNS[sign](x, by))
    x: Any = [rng.randrange(10) for _ in range(3)]
    given, lines = repr(x), ["def f(x):"]
    if rng.random() < TWICE:
        change = rng.choice([*CHANGES])
        lines.append(f"    x = {change}")
        x = CHANGES[change](x)
    end = rng.choice([*ENDS])
    return SmallTriple("\n".join([*lines, f"    return {end}"]), given, encode(ENDS[end](x)))
