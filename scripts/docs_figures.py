#!/usr/bin/env python3
"""Fill the figures of the documents in from committed results and from the code: ``python scripts/docs_figures.py``.

A figure is a number with a comment behind it that says where it comes from, and how it is written:

    58,900<!-- figure: benchmarks/env-household.json > figures > replayed_steps_50_objects > value as 3s -->

The source is a JSON or YAML file, ``registry`` (everything that is registered, by kind), or ``turnwise.module:NAME``. The steps
after it are keys, positions, ``KEY=VALUE`` or ``KEY=VALUE & KEY=VALUE`` (the item of a list that has it), ``*`` (all items), or one of ``len``, ``min``,
``max``, ``mean``, ``sum``. ``as`` is followed by the number of significant digits (``3s``), ``d`` (a whole number), ``%d``
(a share in whole per cent), ``ms`` (milliseconds, written as seconds), ``-`` and a format (a fall, written as a positive
number), or a format of Python's.
With ``--check`` nothing is written, and a figure that differs is an error.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
FIGURE = re.compile(r"(-?\d(?:[\d,.-]*\d)?|\?)<!-- figure: (.+?) -->")
AGGREGATES: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "min": min,
    "max": max,
    "sum": sum,
    "mean": statistics.fmean,
}


def pages() -> list[Path]:
    """README and every page under docs/ and benchmarks/ that is tracked or new."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return [path for path in (ROOT / name for name in listed) if path.is_file()]


def filled(text: str, page: str) -> str:
    """The text with every figure as its source has it.

    Raises:
        SystemExit: a source has no such figure; page, source and step are named.
    """
    return FIGURE.sub(lambda found: f"{figure(found[2], page)}<!-- figure: {found[2]} -->", text)


def figure(expression: str, page: str) -> str:
    """What an expression comes to, written as it asks for."""
    path, _, form = expression.partition(" as ")
    source, *steps = path.split(" > ")
    try:
        value = functools.reduce(_step, steps, _source(source))
        return _written(value, form)
    except (LookupError, OSError, ImportError, AttributeError, TypeError, ValueError) as error:
        told = f"{type(error).__name__}: {error}"
        raise SystemExit(f"{page}: {expression!r} has no figure ({told}). Correct the comment.") from error


@functools.cache
def _source(name: str) -> Any:
    if name == "registry":
        from turnwise.kinds import KINDS
        from turnwise.registry import components

        return {kind: [entry.name for entry in components(kind)] for kind in KINDS}
    if ":" in name:
        module, _, attribute = name.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        return found() if callable(found) else found
    text = (ROOT / name).read_text("utf-8")
    return json.loads(text) if name.endswith(".json") else yaml.safe_load(text)


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict) and step in value:
        return value[step]
    if step in AGGREGATES:
        return AGGREGATES[step](value)
    if step == "*":
        return list(value.values() if isinstance(value, dict) else value)
    if isinstance(value, list) and "=" in step:
        wanted = [condition.partition("=")[::2] for condition in step.split(" & ")]
        return [item for item in value if all(str(item[key]) == text for key, text in wanted)][-1]
    if isinstance(value, list) and not step.lstrip("-").isdecimal():
        return [_step(item, step) for item in value]
    return value[int(step)] if isinstance(value, (list, tuple)) else value[step]


def _written(value: Any, form: str) -> str:
    """The value in its form; numbers without one have commas at their thousands."""
    if form == "%d":  # a share, in whole per cent
        return f"{round(100 * value)}"
    if form == "ms":  # milliseconds, written as seconds
        return f"{value / 1000:.2f}"
    if form.startswith("-"):  # a fall, written as a positive number
        return format(-value, form[1:])
    if form == "d":
        return f"{round(value):,}"
    digits = re.fullmatch(r"(\d)s", form)
    if digits:
        decimals = int(digits[1]) - 1 - (math.floor(math.log10(abs(value))) if value else 0)
        return f"{round(value, decimals):,.{max(decimals, 0)}f}"
    return format(value, form) if form else f"{value:,}" if isinstance(value, (int, float)) else str(value)


def stale() -> Iterator[tuple[Path, str]]:
    """Pages whose figures differ from their sources, each with the text that it should have."""
    for page in pages():
        text = page.read_text("utf-8")
        new = filled(text, str(page.relative_to(ROOT)))
        if new != text:
            yield page, new


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a figure differs")
    check = parser.parse_args().check
    found = list(stale())
    for page, new in found:
        old = page.read_text("utf-8")
        for before, after in zip(old.splitlines(), new.splitlines(), strict=True):
            if before != after:
                print(f"{page.relative_to(ROOT)}:\n- {before}\n+ {after}")
        if not check:
            page.write_text(new, "utf-8")
    if check and found:
        sys.exit("Figures differ from their sources: run `python scripts/docs_figures.py`.")


if __name__ == "__main__":
    main()
