"""`turnwise explain` of every recipe that comes along, each time in a fresh process that has nothing kept, beside `import torch`.

    python benchmarks/explain.py [ROUNDS] > benchmarks/explain.json        # 5 rounds unless told

A round starts a bare interpreter, `import torch` and `explain` of each recipe, one after the other; one round before them is not counted (it
compiles modules). `cpu` is user and system time of the process and its children, which a busy machine changes little; `clock` is
what somebody waits. Values are medians over the rounds, spreads the largest less the smallest; ratios are formed within a round.
`explain` is the slowest recipe of each round.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from turnwise.machine import describe
from turnwise.tasks.core import Json

ROOT = Path(__file__).resolve().parents[1]
RECIPES = sorted(path.stem for path in (ROOT / "trainers" / "recipe" / "presets").glob("*.yaml"))
BESIDE = {"python": "pass", "import torch": "import torch"}


class Taken(NamedTuple):
    """Seconds of one process."""

    cpu: float
    clock: float


def taken(words: Sequence[str]) -> Taken:
    """Run a program of this interpreter, with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="turnwise-explain-") as cache:
        since = time.perf_counter()
        child = subprocess.Popen(
            [sys.executable, *words], env={**os.environ, "XDG_CACHE_HOME": cache}, stdout=subprocess.DEVNULL
        )
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        clock = time.perf_counter() - since
    assert child.returncode == 0, words
    return Taken(used.ru_utime + used.ru_stime, clock)


def one_round() -> dict[str, Taken]:
    """What stands beside, and each recipe."""
    found = {name: taken(["-c", code]) for name, code in BESIDE.items()}
    verb = "from turnwise.cli import main; main()"
    return found | {recipe: taken(["-c", verb, "explain", recipe]) for recipe in RECIPES}


def figure(values: Sequence[float], unit: str) -> Json:
    return {
        "value": round(statistics.median(values), 3),
        "unit": unit,
        "spread": round(max(values) - min(values), 3),
    }


def main() -> None:
    load = [round(x, 2) for x in os.getloadavg()]
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    one_round()
    rounds = [one_round() for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
    slowest = [
        Taken(max(one[name].cpu for name in RECIPES), max(one[name].clock for name in RECIPES))
        for one in rounds
    ]
    figures: dict[str, Json] = {
        "explain cpu": figure([one.cpu for one in slowest], "s"),
        "explain clock": figure([one.clock for one in slowest], "s"),
        "explain cpu / import torch": figure(
            [one.cpu / of["import torch"].cpu for one, of in zip(slowest, rounds, strict=True)], ""
        ),
    }
    for name in (*BESIDE, *RECIPES):
        figures[f"{name} cpu"] = figure([one[name].cpu for one in rounds], "s")
    print(
        json.dumps(
            {
                "name": "explain",
                "date": datetime.now(UTC).date().isoformat(),
                "commit": commit.stdout.strip(),
                "machine": describe(),
                "load_before": load,
                "figures": figures,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
