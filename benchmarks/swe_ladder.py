"""The ladder of scripts on suites of SWE-v0: ``python benchmarks/swe_ladder.py small history hard --tasks 12``.

Each script plays each of the drawn tasks to its end; prints JSON like ``turnwise bench``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from statistics import median
from typing import Any

from turnwise.envs.swe.env import SweEnv
from turnwise.envs.swe.ladder import LADDER, PlayedScript, level_of, play
from turnwise.envs.swe.tasks import load_instances, place_of
from turnwise.errors import TurnwiseError
from turnwise.machine import describe
from turnwise.tasks.core import derive_rng


def climb(name: str, count: int) -> dict[str, Any]:
    """Success and calls of each script on some tasks of a suite, and how hard each of these is."""
    known = load_instances(place_of(name))
    chosen = derive_rng("swe ladder", name).sample(known, min(count, len(known)))
    rows: dict[str, list[PlayedScript]] = {script: [] for script in LADDER}
    levels: list[dict[str, Any]] = []
    for task in chosen:
        env = SweEnv()
        try:
            played = {script: play(env, task, script) for script in LADDER}
        except TurnwiseError as error:
            print(f"– {name} {task.package} {task.where}: {error}", file=sys.stderr)
            continue
        finally:
            env.close()
        for script, one in played.items():
            rows[script].append(one)
        level = level_of({script: one.resolved for script, one in played.items()})
        levels.append(
            {"package": task.package, "where": task.where, "operator": task.operator, "level": level}
        )
        print(name, task.package, task.where, level, file=sys.stderr, flush=True)
    return {
        "tasks": len(levels),
        "of": len(known),
        "scripts": {script: _summary(of) for script, of in rows.items()},
        "levels": dict(sorted(Counter(str(one["level"]) for one in levels).items())),
        "per_task": levels,
    }


def _summary(played: list[PlayedScript]) -> dict[str, float]:
    solved = sum(one.resolved for one in played)
    calls = median(one.calls for one in played) if played else 0.0
    return {"solved": solved, "success": round(solved / max(len(played), 1), 2), "calls": calls}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="+", help="small, history, hard, built, or a file of tasks")
    parser.add_argument("--tasks", type=int, default=12, help="of each suite")
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    figures = {name: climb(name, asked.tasks) for name in asked.suites}
    print(json.dumps({"name": "swe ladder", "machine": describe(), "figures": figures}, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
