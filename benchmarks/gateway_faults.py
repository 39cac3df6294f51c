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
    print(json.dumps({"trials": len(rows), "violations": violations, "done": dict(done)}))
    return int(violations > 0)


if __name__ == "__main__":
    sys.exit(main())
