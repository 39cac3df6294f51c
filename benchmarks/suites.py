"""Survey suites and join what was found with benchmarks/suites.json; several runs may do so at once.

python benchmarks/suites.py household search/easy …      # suites, environments or families
python benchmarks/suites.py --played 60 --compared 300 household/horizon-200   # where an episode is long
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import json
import os
import subprocess
from pathlib import Path

from turnwise.envs.check.survey import Survey, suites_of, survey
from turnwise.machine import describe

FILE = Path(__file__).with_suffix(".json")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("names", nargs="*")
    asked.add_argument("--played", type=int, default=1000)
    asked.add_argument("--compared", type=int, default=10_000)
    given = asked.parse_args()
    for suite in suites_of(given.names):
        found = survey(suite, gold=given.played, baselines=given.played, tasks=given.compared)
        join(found)
        print(f"{'✓' if found.ok else '✗'} {found}", flush=True)


def join(found: Survey) -> None:
    """Put a suite's row in the place of an older one of the same suite."""
    row = {**found.to_json(), "ok": found.ok, "date": str(datetime.date.today()), "commit": commit()}
    folder = os.open(FILE.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # so that nobody's rows are lost between reading and writing
        rows = {old["suite"]: old for old in json.loads(FILE.read_text("utf-8"))["suites"]}
        rows[found.suite] = row
        ordered = [rows[name] for name in sorted(rows)]
        data = {"ok": all(each.get("ok", True) for each in ordered), "machine": describe(), "suites": ordered}
        aside = FILE.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(data, indent=2) + "\n", "utf-8")
        aside.replace(FILE)
    finally:
        os.close(folder)


def commit() -> str:
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    return said.stdout.strip()


if __name__ == "__main__":
    main()
