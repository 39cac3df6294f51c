#!/usr/bin/env python3
"""Fill the figures of the documents in from committed results and from the code: ``python scripts/docs_figures.py``.

A figure in prose is a number with a name behind it, and a table with figures stands between two marks:

    58,900<!-- figure: env-household.replayed-steps-50-objects -->
    <!-- table: worlds.text-worlds --> … <!-- table ends -->

``docs/figures.yaml`` has the query behind each name, and each table with queries in double braces:

    benchmarks/env-household.json > figures > replayed_steps_50_objects > value as 3s

A query begins with its source: a JSON or YAML file, ``registry`` (everything that is registered, by kind), or
``turnwise.module:NAME``. The steps after it are keys, positions, ``KEY=VALUE`` or ``KEY=VALUE & KEY=VALUE`` (the item of a list
that has it), ``*`` (all items), or one of ``len``, ``min``, ``max``, ``mean``, ``sum``. ``as`` is followed by the number of
significant digits (``3s``), ``d`` (a whole number), ``%d`` (a share in whole per cent), ``ms`` (milliseconds, written as
seconds), ``-`` and a format (a fall, written as a positive number), or a format of Python's.
With ``--check`` nothing is written, and a figure that differs is an error.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import importlib
import json
import math
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
QUERIES = ROOT / "docs" / "figures.yaml"
FIGURE = re.compile(r"(-?\d(?:[\d,.-]*\d)?|\?)<!-- figure: (\S+) -->")
TABLE = re.compile(r"<!-- table: (\S+) -->\n.*?<!-- table ends -->", re.DOTALL)
QUERY = re.compile(r"\{\{ (.+?) \}\}")
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


class Named(NamedTuple):
    """The queries of figures in prose, and the tables that have queries where their figures stand."""

    figures: Mapping[str, str]
    tables: Mapping[str, str]


@functools.cache
def named() -> Named:
    """What docs/figures.yaml says."""
    return Named(**yaml.safe_load(QUERIES.read_text("utf-8")))


def filled(text: str, page: str, known: Named | None = None) -> str:
    """The text with every figure and every table as their sources have them.

    Raises:
        SystemExit: a name is unknown, or a source has no such figure; page and query are named.
    """
    known = known or named()
    text = TABLE.sub(lambda found: table(known, found[1], page), text)
    return FIGURE.sub(
        lambda found: f"{figure(_found(known.figures, found[2], page), page)}<!-- figure: {found[2]} -->",
        text,
    )


def table(known: Named, name: str, page: str) -> str:
    """A table between its marks, with its figures."""
    rows = QUERY.sub(lambda query: figure(query[1], page), _found(known.tables, name, page))
    return f"<!-- table: {name} -->\n\n{rows}\n<!-- table ends -->"


def _found(among: Mapping[str, str], name: str, page: str) -> str:
    if name in among:
        return among[name]
    near = difflib.get_close_matches(name, among, 1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise SystemExit(f"{page}: {QUERIES.relative_to(ROOT)} has no {name!r}.{meant}")


def figure(expression: str, page: str) -> str:
    """What an expression comes to, written as it asks for."""
    path, _, form = expression.partition(" as ")
    source, *steps = path.split(" > ")
    try:
        value = functools.reduce(_step, steps, _source(source))
        return _written(value, form)
    except (LookupError, OSError, ImportError, AttributeError, TypeError, ValueError) as error:
        told = f"{type(error).__name__}: {error}"
        raise SystemExit(
            f"{page}: {expression!r} has no figure ({told}). Correct docs/figures.yaml."
        ) from error


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
        name = str(page.relative_to(ROOT))
        print(
            *difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, n=0, lineterm=""), sep="\n"
        )
        if not check:
            page.write_text(new, "utf-8")
    if check and found:
        sys.exit("Figures differ from their sources: run `python scripts/docs_figures.py`.")


if __name__ == "__main__":
    main()
