"""Reads a set of tasks in whatever format it is: rows, task folders, verifiers environments, suites."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Split, derive_rng
from turnwise.trainers.audit.xray.core import ProbedSet, TaskSet, XTask
from turnwise.trainers.audit.xray.options import XrayOptions

_FORMATS = (
    "Name task folders of Harbor, rows of SWE-bench's kind, a verifiers environment (.py), rows with a reward function (--reward FILE.py:function), "
    "or a suite such as shop/easy."
)


def read_tasks(path: str, options: XrayOptions) -> TaskSet:
    """The tasks at a path, or of a suite.

    Raises:
        TurnwiseError: nothing there is a set of tasks; says what could be.
    """
    from turnwise.envs.registry import is_suite, suites

    place = Path(path).expanduser()
    if not place.exists():
        if is_suite(path):
            from turnwise.trainers.audit.xray.own_suites import read_suite

            return read_suite(path, options)
        near = difflib.get_close_matches(path, [suite.name for suite in suites()], n=1)
        raise TurnwiseError(
            f"{path} is no file, folder or suite.", f"Did you mean {near[0]!r}?" if near else _FORMATS
        )
    if place.is_dir():
        return _folder(place, options)
    if place.suffix == ".py":
        from turnwise.trainers.audit.xray.verifiers import read_environment

        return read_environment(place, options)
    if place.suffix not in (".jsonl", ".json", ".parquet"):
        raise TurnwiseError(f"{path} is in no format that is known.", _FORMATS)
    return _rows(place, options)


def _folder(place: Path, options: XrayOptions) -> TaskSet:
    from turnwise.trainers.audit.xray.folders import read_folders, task_folders

    if task_folders(place):
        return read_folders(place, options)
    modules = [
        one
        for one in (place / f"{place.name}.py", place / "__init__.py", *sorted(place.glob("*.py")))
        if one.is_file()
    ]
    modules += sorted(place.glob("*/__init__.py"))
    for module in modules:
        if "def load_environment" in module.read_text("utf-8", "replace"):
            from turnwise.trainers.audit.xray.verifiers import read_environment

            return read_environment(module, options)
    there = ", ".join(sorted(one.name for one in place.iterdir())[:6]) or "nothing"
    raise TurnwiseError(
        f"{place} holds no tasks: neither task.toml nor task.yaml below it, nor a module with load_environment; here: {there}.",
        _FORMATS,
    )


def _rows(place: Path, options: XrayOptions) -> TaskSet:
    from turnwise.trainers.audit.xray.columns import file_rows

    first: Any = next((row for _, row in file_rows(place) if isinstance(row, dict)), {})
    if not options.reward and any(name in first for name in ("FAIL_TO_PASS", "fail_to_pass")):
        from turnwise.trainers.audit.xray.swe_rows import read_swe

        return read_swe(place, options)
    from turnwise.trainers.audit.xray.rewarded_rows import read_rewarded

    return read_rewarded(place, options)


def chosen(tasks: Sequence[XTask], options: XrayOptions) -> list[XTask]:
    """The sample that is asked for, in the set's order."""
    if not options.n or options.n >= len(tasks):
        return [*tasks]
    places = sorted(derive_rng("xray", options.seed).sample(range(len(tasks)), options.n))
    return [tasks[place] for place in places]


def probe(path: str, options: XrayOptions, against: str = "") -> ProbedSet:
    """Read a set, judge it, and read the set that it is held against."""
    found = read_tasks(path, options)
    other = read_tasks(against, options._replace(split=Split.TRAIN, n=0)).tasks if against else ()
    return probe_set(found, options, other, against)


def probe_set(
    found: TaskSet, options: XrayOptions, other: Sequence[XTask] = (), other_name: str = ""
) -> ProbedSet:
    """Judge what was read."""
    judged = found.probe(chosen(found.tasks, options))
    return ProbedSet(found, judged, other, other_name)
