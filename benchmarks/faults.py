"""A generated, seeded fault campaign: ``python benchmarks/faults.py --trials 300 --seed 1 --results FILE``.

Each trial draws a fault from its seed, lets it happen to a real ``turnwise eval`` or ``turnwise train``, resumes what
died, and judges what is left: nothing lost, nothing counted twice, no failure that became a reward. Finished trials are
skipped, so the command goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from faulting.draw import KINDS, SCOPES, draw
from faulting.trial import Runner

from turnwise.machine import describe

OUTCOMES = ("identical", "masked", "agent's failure", "counted", "did not meet the run", "violation")


def campaign(
    numbers: list[int],
    seed: int,
    kinds: tuple[str, ...],
    scopes: tuple[str, ...],
    results: Path,
    work: Path,
    at_once: int,
) -> list[dict[str, Any]]:
    """Carry out the trials that are not in ``results`` yet; all that are asked for."""
    done = {(row["seed"], row["number"], row["scope"], row["kind"]): row for row in read(results)}
    trials = [draw(number, seed, kinds, scopes) for number in numbers]
    waiting = deque(t for t in trials if (t.seed, t.number, t.scope, t.kind) not in done)

    def play(_: int) -> None:
        runner = Runner(work)
        try:
            while waiting:
                trial = waiting.popleft()
                row = runner(trial)
                done[row["seed"], row["number"], row["scope"], row["kind"]] = row
                with results.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(
                    f"{trial.number:4d}  {row['outcome']:24s} {row['seconds']:5.1f} s  {trial.name}  {'; '.join(row['violations'])}",
                    file=sys.stderr,
                    flush=True,
                )
        finally:
            runner.close()

    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(play, range(at_once)))
    return [done[t.seed, t.number, t.scope, t.kind] for t in trials]


def read(results: Path) -> list[dict[str, Any]]:
    """The finished trials."""
    return [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []


def figures(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How often each fault was tried, and what came of it."""
    faults: dict[str, Counter[str]] = {}
    for row in rows:
        faults.setdefault(f"{row['scope']}/{row['kind']}/{row['fault']}", Counter())[row["outcome"]] += 1
    return {
        "trials": len(rows),
        "met": sum(row["outcome"] != "did not meet the run" for row in rows),
        "outcomes": dict(Counter(row["outcome"] for row in rows)),
        "places": dict(Counter(f"{row['scope']}: {place}" for row in rows for place in row["places"])),
        "seconds_longest": max((row["seconds"] for row in rows), default=0),
        "faults": {name: dict(counted) for name, counted in sorted(faults.items())},
        "violations": [row for row in rows if row["outcome"] == "violation"],
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Kind × times × outcome, in Markdown."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        counted = found.setdefault((row["kind"], row["scope"]), Counter())
        counted["trials"] += 1
        counted["resumed"] += row["outcome"].startswith("resumed")
        counted[row["outcome"].removeprefix("resumed: ")] += 1
    lines = [
        "| fault | in | times | " + " | ".join(OUTCOMES) + " | of these resumed |",
        "|---" * (len(OUTCOMES) + 4) + "|",
    ]
    for (kind, scope), counted in sorted(found.items()):
        cells = [kind, scope, *(str(counted[name]) for name in ("trials", *OUTCOMES, "resumed"))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--scopes", nargs="+", choices=SCOPES, default=SCOPES)
    parser.add_argument("--results", type=Path, help="a line for each finished trial, which is not repeated")
    parser.add_argument(
        "--work", type=Path, help="where trials happen; what ended in a violation stays there"
    )
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="turnwise-faults-") as folder:
        results = asked.results or Path(folder) / "results.jsonl"
        numbers = list(range(asked.first, asked.first + asked.trials))
        rows = campaign(
            numbers,
            asked.seed,
            tuple(asked.kinds),
            tuple(asked.scopes),
            results,
            asked.work or Path(folder),
            asked.at_once,
        )
    if asked.results:  # also those of earlier commands
        rows = read(asked.results)
    if asked.json:
        print(json.dumps({"name": "faults", "machine": describe(), "figures": figures(rows)}, indent=2))
    else:
        print(table(rows))
    return 1 if any(row["outcome"] == "violation" for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
