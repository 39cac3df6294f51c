"""Whether the hidden tests of each task can decide: ``python benchmarks/swe_twins.py small history hard --rows rows.jsonl``.

With the true repair, the whole suite runs beside each task's twins, and the task is judged once, as the bug is. A twin beside
which another test fails says nothing; a task decides if a failing test has a twin that is left, the repair counts and the bug
does not. The same command goes on where it stopped (``--seconds`` stops it). ``--correct`` takes such twins, and tasks that do not
decide, out of the files; status 1 if there are any, 2 while tasks are left.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turnwise.envs.swe.confirm import quiet_twins
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.levels import key_of
from turnwise.envs.swe.sweep import sweep
from turnwise.envs.swe.tasks import load_instances, place_of
from turnwise.envs.swe.twins import function_of
from turnwise.envs.swe.verify import judge
from turnwise.errors import TurnwiseError
from turnwise.machine import describe
from turnwise.tools.sandbox.core import SandboxImage
from turnwise.tools.sandbox.registry import isolated_backend


def checked(task: Instance) -> dict[str, Any]:
    """A row: which twins disturb others, which failing tests have twins besides, and what is judged of repair and bug."""
    since, backend = time.monotonic(), isolated_backend()
    row: dict[str, Any] = {"package": task.package, "version": task.version, "where": task.where}
    try:
        image = SandboxImage.of(dict(task.fixed()), root=task.source.root)
        kept = quiet_twins(backend, image, task.source, task.fixed(), task.twins, task.pass_to_pass)
        left = dataclasses.replace(task, twins=kept)
        judged = judge(backend, left)
    except TurnwiseError as error:
        return {**row, "decides": False, "loud": [], "why": str(error)}
    twinned = {function_of(test) for twin in kept for test in twin.failing}
    failing = {function_of(test) for test in task.fail_to_pass}
    told: dict[str, Any] = {
        "twins": len(task.twins),
        "loud": [number for number, twin in enumerate(task.twins) if twin not in kept],
        "failing_functions": len(failing),
        "with_twins": len(failing & twinned),
        "probes": len(task.probes),
        "repair_counts": judged.repaired,
        "bug_counts": judged.unrepaired,
        "decides": bool(failing & twinned) and judged.ok,
        "seconds": round(time.monotonic() - since, 1),
    }
    return {**row, **told, **({"why": judged.why} if judged.why else {})}


def summary(rows: Sequence[Mapping[str, Any]], of: int) -> dict[str, Any]:
    """What a suite's rows come to."""
    asked = [row for row in rows if "twins" in row]
    return {
        "tasks": len(rows),
        "of": of,
        "decide": sum(row["decides"] for row in rows),
        "all_failing_functions_have_twins": sum(
            row["with_twins"] == row["failing_functions"] for row in asked
        ),
        "twins": sum(row["twins"] for row in asked),
        "loud_twins": sum(len(row["loud"]) for row in rows),
        "tasks_with_loud_twins": sum(bool(row["loud"]) for row in rows),
        "per_task": [{name: row[name] for name in row if name not in ("suite", "key")} for row in rows],
    }


def correct(suite: str, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write a suite's file without what says nothing; how many tasks are left."""
    told, kept = {row["key"]: row for row in rows}, list[Instance]()
    for task in load_instances(place_of(suite)):
        row = told[key_of(task)]
        if row["decides"]:
            twins = tuple(twin for number, twin in enumerate(task.twins) if number not in row["loud"])
            kept.append(dataclasses.replace(task, twins=twins))
    data = "".join(json.dumps(task.to_json()) + "\n" for task in kept).encode()
    place = place_of(suite)
    place.write_bytes(gzip.compress(data, mtime=0) if place.suffix == ".gz" else data)
    return len(kept)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+", help="small, history, hard, built, or a file of tasks")
    parser.add_argument("--rows", type=Path, required=True, help="a line for each task that was checked")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no task later than this")
    parser.add_argument(
        "--correct", action="store_true", help="take out what says nothing, where all was checked"
    )
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    swept = sweep(asked.suites, asked.rows, checked, seconds=asked.seconds)
    if swept.left:
        print(f"{swept.left} tasks are left; the same command goes on.", file=sys.stderr)
    counts = {suite: len(load_instances(place_of(suite))) for suite in asked.suites}
    figures = {suite: summary(rows, counts[suite]) for suite, rows in swept.rows.items()}
    print(json.dumps({"name": "swe twins", "machine": describe(), "figures": figures}, indent=2))
    if swept.left:
        return 2
    for suite, rows in swept.rows.items() if asked.correct else ():
        print(f"{suite}: {correct(suite, rows)} of {counts[suite]} tasks are left.", file=sys.stderr)
    return int(any(one["loud_twins"] or one["decide"] < one["tasks"] for one in figures.values()))


if __name__ == "__main__":
    raise SystemExit(main())
