"""Survey suites and join what was found with benchmarks/suites.json; several runs may do so at once.

python benchmarks/suites.py household search/easy …      # suites, environments or families
"""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

from turnwise.envs.check.survey import Survey, suites_of, survey
from turnwise.machine import describe

FILE = Path(__file__).with_suffix(".json")


def main() -> None:
    for suite in suites_of(sys.argv[1:]):
        found = survey(suite)
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
