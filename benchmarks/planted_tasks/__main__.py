"""``python -m benchmarks.planted_tasks FOLDER --seed 1``: the sets to FOLDER/sets, the truth to FOLDER/truth.json."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from . import plant


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted_tasks", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    truth = plant(chosen.folder / "sets", chosen.seed)
    rows = [task._asdict() for task in truth]
    (chosen.folder / "truth.json").write_text(
        json.dumps({"seed": chosen.seed, "tasks": rows}, indent=1) + "\n"
    )
    for (kind, form), count in sorted(
        Counter((task.kind, task.format.split("/")[0]) for task in truth).items()
    ):
        print(f"{count:4d}  {form:8s}  {kind}")


if __name__ == "__main__":
    main()
