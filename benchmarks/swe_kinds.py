"""What becomes of the hard bugs of each kind: ``python benchmarks/swe_kinds.py mistaken_helper drifted_results --rows rows.jsonl``.

In each package of envs/swe/packages.yaml up to three tasks of a kind are looked for, as ``turnwise swe build --hard`` does of all
kinds together. The same command goes on where it stopped (``--seconds`` stops it); ``--out`` collects the tasks. Prints JSON
like ``turnwise bench``; status 2 while packages are left.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from turnwise.envs.swe.deep import KINDS
from turnwise.envs.swe.draw import Drawing
from turnwise.envs.swe.packages import Package, packages
from turnwise.errors import TurnwiseError
from turnwise.machine import describe
from turnwise.tools.sandbox.registry import isolated_backend

_TASKS = 3  # of a package and a kind


def drawn(package: Package, kind: str, out: Path | None, seconds: float) -> dict[str, Any]:
    """A row: how many bugs of a kind were tried in a package, and how many had which fate."""
    since = time.monotonic()
    row: dict[str, Any] = {"package": package.name, "kind": kind}
    try:
        drawing = Drawing(isolated_backend(), package, hard=True, kinds=(kind,))
        for made in drawing.draw(_TASKS, since + seconds):
            if out:
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(made.to_json()) + "\n")
    except TurnwiseError as error:
        return {**row, "problem": str(error)}
    fates = {name: count for name, count in drawing.tally._asdict().items() if name != "cpu" and count}
    return {**row, "fates": fates, "seconds": round(time.monotonic() - since, 1)}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each kind: in how many packages it was looked for, in how many there are such bugs, and their fates."""
    found: dict[str, Any] = {}
    for kind in sorted({row["kind"] for row in rows}):
        of = [row for row in rows if row["kind"] == kind]
        fates = sum((Counter(row.get("fates", {})) for row in of), Counter[str]())
        with_bugs = sum(bool(row.get("fates")) for row in of)
        found[kind] = {"packages": len(of), "with_bugs": with_bugs, "tried": 0, "kept": 0, **fates}
    return {**found, "per_package": rows}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], help="all, if none is named")
    parser.add_argument("--rows", type=Path, required=True, help="a line for each package and kind")
    parser.add_argument("--out", type=Path, help="tasks that were made")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin nothing later than this")
    parser.add_argument("--each", type=float, default=60.0, help="seconds of a package and a kind")
    parser.add_argument("--json", action="store_true", help="what it prints anyway (for benchmarks' tools)")
    asked = parser.parse_args()
    lines = asked.rows.read_text("utf-8").splitlines() if asked.rows.exists() else []
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    done, left = {(row["package"], row["kind"]) for row in rows}, 0
    ends = time.monotonic() + asked.seconds
    for package in packages().values():
        for kind in asked.kinds or KINDS:
            if (package.name, kind) in done or not package.file:  # what comes along is too small for them
                continue
            if time.monotonic() > ends:
                left += 1
                continue
            rows.append(drawn(package, kind, asked.out, asked.each))
            with asked.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(
                "✓",
                package.name,
                kind,
                rows[-1].get("fates", rows[-1].get("problem")),
                file=sys.stderr,
                flush=True,
            )
    print(json.dumps({"name": "swe kinds", "machine": describe(), "figures": summary(rows)}, indent=2))
    return 2 if left else 0


if __name__ == "__main__":
    raise SystemExit(main())
