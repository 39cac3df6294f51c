"""`turnwise bench client` of two trees of sources in turn, each time in a fresh process: before and after a change, in one run.

    git worktree add /tmp/before COMMIT
    python benchmarks/client.py /tmp/before [ROUNDS] > FILE        # 3 rounds unless told

Values are processor microseconds and counts: medians over the rounds, spreads the largest less the smallest. Ratios (after by
before) are formed within a round, so that a machine that is busier in one round than in the next changes them little.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from turnwise.machine import describe
from turnwise.tasks.core import Json

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import json
from turnwise.agents.bench.client import bench_client
print(json.dumps({name: figure._asdict() for name, figure in bench_client(repeats=1).items()}))
"""


def measured(tree: Path) -> dict[str, dict[str, Json]]:
    """The benchmark once, with the sources of a tree."""
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tree, env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def commit(tree: Path) -> str:
    """The commit of a tree, in short."""
    words = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def over(values: Sequence[float], unit: str) -> dict[str, Json]:
    """The median and the spread."""
    digits = 3 if unit in ("", "×") else 1
    return {
        "value": round(statistics.median(values), digits),
        "unit": unit,
        "spread": round(max(values) - min(values), digits),
    }


def main() -> None:
    before, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    load = [round(one, 1) for one in os.getloadavg()]
    pairs = [(measured(before), measured(ROOT)) for _ in range(rounds)]
    figures: dict[str, Json] = {}
    for name, figure in pairs[0][0].items():
        unit = figure["unit"]
        was, now = ([pair[side][name]["value"] for pair in pairs] for side in (0, 1))
        figures[f"{name}, before"], figures[name] = over(was, unit), over(now, unit)
        if unit.startswith("µs"):
            figures[f"{name}, ratio"] = over([b / a for a, b in zip(was, now, strict=True)], "×")
    told = {
        "name": "client",
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(ROOT),
        "before": commit(before),
        "rounds": rounds,
        "load_before": load,
        "machine": describe(),
        "figures": figures,
    }
    print(json.dumps(told, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
