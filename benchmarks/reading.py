"""How the time of reading calls grows with the text: hostile texts of 1 to 64 thousand pieces, in every dialect.

python benchmarks/reading.py > benchmarks/reading.json
"""

from __future__ import annotations

import functools
import json
import math
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from turnwise.envs.functioncall.reward import same
from turnwise.machine import describe
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall, ToolSpec
from turnwise.tools.dialects.hostile import REPEATED, UNCLOSED
from turnwise.tools.dialects.registry import dialects
from turnwise.tools.schema import tool_of_schema

Data = TypeVar("Data")
SIZES = tuple(1000 * 2**k for k in range(7))
REPETITIONS = 3
SPECS = (ToolSpec("search", "", {"type": "object", "properties": {"query": {"type": "string"}}}),)
LIST = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1}


def processor_ms(work: Callable[[], object]) -> float:
    """The least of some repetitions: what else runs on the machine only adds."""
    times: list[float] = []
    for _ in range(REPETITIONS):
        began = time.process_time()
        work()
        times.append(1000 * (time.process_time() - began))
    return min(times)


def row(name: str, make: Callable[[int], Data], work: Callable[[Data], object]) -> Json:
    """Milliseconds at each size, and the power of the size with which they grow (over the last four sizes)."""
    found: list[float] = []
    for size in SIZES:
        data = make(size)
        found.append(max(processor_ms(functools.partial(work, data)), 1e-3))
    exponent = math.log(found[-1] / found[-4]) / math.log(SIZES[-1] / SIZES[-4])
    print(f"{name:50} {found[-1]:9.2f} ms  n^{exponent:.2f}", file=sys.stderr)
    return {"milliseconds": [round(one, 3) for one in found], "exponent": round(exponent, 2)}


def main() -> None:
    rows: dict[str, Json] = {}
    for shape, make in {**REPEATED, **UNCLOSED}.items():
        for dialect in dialects():
            name = f"{shape}, read as {dialect.name}"
            rows[name] = row(name, make, lambda text, read=dialect.parse: read(text, SPECS))
    name = "validating a list of a quarter as many distinct strings"
    tool = tool_of_schema(ToolSpec("f", "", {"properties": {"x": LIST}}), print)
    rows[name] = row(name, lambda size: ToolCall("f", {"x": words(size // 4)}), tool.validate)
    name = "comparing a list with itself in another order"
    rows[name] = row(name, words, lambda items: same(items, items[::-1]))
    data = {"name": "reading", "machine": describe(), "sizes": SIZES, "rows": rows}
    print(json.dumps(data, indent=1))


def words(size: int) -> list[str]:
    return [f"word {number}" for number in range(size)]


if __name__ == "__main__":
    main()
