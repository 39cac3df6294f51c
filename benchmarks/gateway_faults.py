"""A seeded fault campaign of gateway sessions: ``python benchmarks/gateway_faults.py --trials 400 --seed 1 --results FILE``.

Each trial lets two to six clients loose on one to three sessions; see benchmarks/faulting/sessions.py. Trials that are in the file are
skipped, so the command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections import Counter
from pathlib import Path

from faulting.sessions import trial

from turnwise.machine import describe

FAULTS = frozenset(["odd", "hang up", "twice", "pay twice", "429", "503", "507"])
"""Answers and deeds of which a trial must have one, so that a fault took effect in it."""


def main() -> int:
    """Carry out the trials; 1 if there is a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, required=True)
    given = parser.parse_args()
    logging.getLogger("turnwise").setLevel(logging.CRITICAL)
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    rows = {(row["seed"], row["number"]): row for row in map(json.loads, lines)}
    for number in range(given.trials):
        if (given.seed, number) in rows:
            continue
        row = asyncio.run(trial(number, given.seed))._asdict() | {"seed": given.seed}
        rows[given.seed, number] = row
        with given.results.open("a") as file:
            file.write(json.dumps(row) + "\n")
        for violation in row["violations"]:
            print(f"{number:4d}  {violation}", file=sys.stderr, flush=True)
    done = Counter[str]()
    for row in rows.values():
        done.update(row["done"])
    violations = sum(bool(row["violations"]) for row in rows.values())
    figures = {
        "trials": len(rows),
        "met": sum(bool(FAULTS & row["done"].keys()) for row in rows.values()),
        "violations": violations,
        "done": dict(sorted(done.items())),
    }
    print(json.dumps({"name": "gateway-faults", "machine": describe(), "figures": figures}, indent=2))
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
