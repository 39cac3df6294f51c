#!/usr/bin/env python3
"""Run the few tests that failed once more, alone and in one process: ``python scripts/second_try.py PYTEST [OPTION …]``.

A loaded machine, and not the code, may be to blame. What fails twice is a failure; what passes now is named, and is a bug of that
test. Where many failed nothing is run again, and the exit status is 1.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
MOST = 5
GROUP = re.compile(
    r"@[^@\]]+$"
)  # pytest-xdist writes a test's group behind its name, under which one process does not know it


def failed(file: Path) -> list[str]:
    """The tests that the last run says have failed, by the names under which they can be asked for."""
    found = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return sorted({GROUP.sub("", name) for name in found})


def main() -> None:
    """Run them, and end as pytest does."""
    names = failed(FAILED)
    if not 0 < len(names) <= MOST:
        sys.exit(f"::: no second try: {len(names)} tests failed, and it is for 1 to {MOST}")
    print("::: a second try, alone, of:", *names, sep="\n", flush=True)
    os.execvp(sys.argv[1], [*sys.argv[1:], *names])


if __name__ == "__main__":
    main()
