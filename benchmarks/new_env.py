"""docs/how-to/small-model.md followed as it stands: a new environment with tools, learned by a model made from nothing.

python benchmarks/new_env.py [SEED ...]        # seeds 0 1 2 unless named; what is there already is not run again

Everything goes to runs/new-env; `new-env.json` beside this file has the success of each seed before and after with its interval, the
seconds that it took, and the machine. A run that was interrupted goes on with the same command.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
pages: Any = importlib.import_module("pages")

PAGE = ROOT / "docs" / "how-to" / "small-model.md"
FOLDER = ROOT / "runs" / "new-env"
RESULT = ROOT / "benchmarks" / "new-env.json"


def turnwise(*words: str) -> str:
    """The command's standard output; what it says on the way goes to standard error."""
    command = [sys.executable, "-c", "from turnwise.cli import main; main()", *words]
    return subprocess.run(command, cwd=FOLDER, stdout=subprocess.PIPE, text=True, check=True).stdout


def follow() -> None:
    """Everything of the page but the training."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for block in pages.blocks(PAGE):
        if block.title:
            pages.write_file(block, FOLDER)
        for command in block.commands:
            words = shlex.split(command)[1:]
            if words[0] == "train" or (words[0] == "new-env" and (FOLDER / "turnwise-keys").exists()):
                continue
            print(turnwise(*words))


def train(seed: int) -> dict[str, Any]:
    """One seed; its evaluations and how long it took in all."""
    kept = FOLDER / f"seed-{seed}.json"
    if not kept.is_file():
        since, load = time.monotonic(), os.getloadavg()[0]
        said = turnwise(
            "train", "keys.yaml", "--out", f"seed-{seed}", "--resume", "--set", f"seed={seed}", "--json"
        )
        found = {"seed": seed, "seconds": round(time.monotonic() - since), "load_before": round(load, 2)}
        kept.write_text(json.dumps({**found, "evaluations": json.loads(said)["evaluations"]}))
    return json.loads(kept.read_text())


def main(seeds: list[int]) -> None:
    from turnwise.machine import describe

    follow()
    rows = [train(seed) for seed in seeds]
    RESULT.write_text(json.dumps({"name": "new-env", "machine": describe(), "seeds": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or [0, 1, 2])
