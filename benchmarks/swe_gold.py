"""Gold on every task of a suite of SWE-v0, through the tools: ``python benchmarks/swe_gold.py history hard --rows rows.jsonl``.

The same command goes on where it stopped (``--seconds`` stops it). With ``--cost`` it also judges the true repair with and
without what twins and probes add. Prints JSON like ``turnwise bench``; status 1 if a task is not solved, 2 while tasks are left.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from turnwise.envs.check.walks import walk
from turnwise.envs.swe.env import SweEnv
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.reward import grade
from turnwise.envs.swe.sweep import sweep
from turnwise.envs.swe.tasks import load_instances, place_of
from turnwise.errors import TurnwiseError
from turnwise.machine import describe
from turnwise.tools.sandbox.registry import isolated_backend

_LEAST = 1 / 64  # seconds that a ratio is taken of


def played(task: Instance, *, with_cost: bool) -> dict[str, Any]:
    """A row: what the task is, whether gold solved it, in how many calls and seconds, and what failed."""
    since, env = time.monotonic(), SweEnv()
    try:
        walked = walk(env, task.task(), "gold")
        details = walked.steps[-1].info.get("details", {})
        told = {"solved": walked.success, "calls": len(walked.actions), "verdict": details.get("verdict", "")}
        told |= {name: details[name] for name in ("failed", "broken") if details.get(name)}
    except TurnwiseError as error:
        told = {"solved": False, "calls": 0, "verdict": str(error)}
    finally:
        env.close()
    row = {"seconds": round(time.monotonic() - since, 1), **_about(task), **told}
    return row | cost(task) if with_cost else row


def cost(task: Instance) -> dict[str, float]:
    """CPU seconds of a verdict about the true repair: all of it, and of the plain suite alone."""
    plain = dataclasses.replace(task, twins=(), probes=())
    whole, bare = (grade(isolated_backend(), one, one.fixed()).cpu for one in (task, plain))
    return {"cpu": round(whole, 2), "cpu_plain": round(bare, 2)}


def _about(task: Instance) -> dict[str, Any]:
    marks = [line[:1] for line in task.patch().splitlines() if not line.startswith(("---", "+++"))]
    return {
        "package": task.package,
        "version": task.version,
        "where": task.where,
        "operator": task.operator,
        "lines": sum(mark in "+-" for mark in marks),
        "files": len(task.edits),
        "fail_to_pass": len(task.fail_to_pass),
        "pass_to_pass": len(task.pass_to_pass),
        "twins": len(task.twins),
        "probes": len(task.probes),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What a suite's rows come to."""
    figures: dict[str, Any] = {"tasks": len(rows), "solved": sum(row["solved"] for row in rows)}
    figures["without_probes"] = sum(not row["probes"] for row in rows)
    figures["median_seconds"] = round(median(row["seconds"] for row in rows), 1) if rows else 0
    if costs := [row for row in rows if "cpu" in row]:
        figures["cost"] = {
            "tasks": len(costs),
            "median_cpu": round(median(row["cpu"] for row in costs), 2),
            "median_cpu_plain": round(median(row["cpu_plain"] for row in costs), 2),
            "median_ratio": round(median(row["cpu"] / max(row["cpu_plain"], _LEAST) for row in costs), 2),
        }
    return {**figures, "per_task": [{name: row[name] for name in row if name != "suite"} for row in rows]}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+", help="small, history, hard, built, or a file of tasks")
    parser.add_argument("--rows", type=Path, required=True, help="a line for each task that was played")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no task later than this")
    parser.add_argument("--cost", action="store_true", help="also what twins add to a verdict")
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    swept = sweep(
        asked.suites, asked.rows, lambda task: played(task, with_cost=asked.cost), seconds=asked.seconds
    )
    if swept.left:
        print(f"{swept.left} tasks are left; the same command goes on.", file=sys.stderr)
    counts = {suite: len(load_instances(place_of(suite))) for suite in asked.suites}
    figures = {suite: {"of": counts[suite], **summary(rows)} for suite, rows in swept.rows.items()}
    print(json.dumps({"name": "swe gold", "machine": describe(), "figures": figures}, indent=2))
    if swept.left:
        return 2
    return 0 if all(one["solved"] == one["tasks"] for one in figures.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
