"""The ladder of scripts on suites of SWE-v0: ``python benchmarks/swe_ladder.py small history hard --tasks 12 --rows rows.jsonl``.

Each script plays each of the drawn tasks to its end; the same command goes on where it stopped (``--seconds`` stops it).
Prints JSON like ``turnwise bench``; ``--write`` puts the levels into ``envs/swe/levels.json``, where suites read them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from turnwise.envs.swe.env import SweEnv
from turnwise.envs.swe.instance import Instance
from turnwise.envs.swe.ladder import LADDER, level_of, play
from turnwise.envs.swe.levels import LEVELS, UNKNOWN
from turnwise.envs.swe.sweep import sweep
from turnwise.errors import TurnwiseError
from turnwise.machine import describe
from turnwise.tasks.core import derive_rng


def climbed(task: Instance) -> dict[str, Any]:
    """A row: whether each script solved a task, in how many calls, and so how hard it is; level 0 where none could be judged."""
    row: dict[str, Any] = {"package": task.package, "where": task.where, "operator": task.operator}
    env = SweEnv()
    try:
        got = {script: play(env, task, script) for script in LADDER}
    except TurnwiseError as error:
        return {**row, "level": UNKNOWN, "why": str(error)}
    finally:
        env.close()
    row["scripts"] = {script: one._asdict() for script, one in got.items()}
    return {**row, "level": level_of({script: one.resolved for script, one in got.items()})}


def summary(rows: list[dict[str, Any]], of: int) -> dict[str, Any]:
    """What a suite's rows come to: success and calls of each script, how many tasks have which level."""
    judged = [row for row in rows if row["level"] != UNKNOWN]
    return {
        "tasks": len(judged),
        "of": of,
        "scripts": {script: _script([row["scripts"][script] for row in judged]) for script in LADDER},
        "levels": dict(sorted(Counter(str(row["level"]) for row in judged).items())),
        "per_task": [{name: row[name] for name in row if name not in ("suite", "scripts")} for row in rows],
    }


def _script(got: list[dict[str, Any]]) -> dict[str, float]:
    solved = sum(one["resolved"] for one in got)
    calls = median(one["calls"] for one in got) if got else 0.0
    return {"solved": solved, "success": round(solved / max(len(got), 1), 2), "calls": calls}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+", help="small, history, hard, built, or a file of tasks")
    parser.add_argument("--tasks", type=int, default=12, help="of each suite; 0: all")
    parser.add_argument("--rows", type=Path, required=True, help="a line for each task that was played")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no task later than this")
    parser.add_argument("--write", action="store_true", help="note the levels where suites read them")
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    counts: dict[str, int] = {}

    def choose(suite: str, tasks: Sequence[Instance]) -> Sequence[Instance]:
        counts[suite] = len(tasks)
        most = min(asked.tasks or len(tasks), len(tasks))
        return derive_rng("swe ladder", suite).sample(list(tasks), most)

    swept = sweep(asked.suites, asked.rows, climbed, seconds=asked.seconds, choose=choose)
    if swept.left:
        print(f"{swept.left} tasks are left; the same command goes on.", file=sys.stderr)
    figures = {suite: summary(rows, counts[suite]) for suite, rows in swept.rows.items()}
    print(json.dumps({"name": "swe ladder", "machine": describe(), "figures": figures}, indent=2))
    if asked.write:
        known = json.loads(LEVELS.read_text("utf-8"))
        known |= {row["key"]: row["level"] for rows in swept.rows.values() for row in rows if row["level"]}
        LEVELS.write_text(json.dumps(dict(sorted(known.items())), indent=0) + "\n", "utf-8")
    return 2 if swept.left else 0


if __name__ == "__main__":
    raise SystemExit(main())
