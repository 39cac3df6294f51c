"""Credit rules against each other: the same start, the same suite, several seeds, curves over steps and tokens.

    python benchmarks/learning/compare.py household-easy OUT --seeds 5 --jobs 2 --methods grpo return_to_go
    python benchmarks/learning/summary.py OUT

The recipe's warm start is made once; every method goes on from it with every seed, for the recipe's updates. What is
done already is not done again. ``tree`` plays fewer steps in an update than the others, which the summary accounts for.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

METHODS: Mapping[str, Mapping[str, Any]] = {
    "grpo": {"credit": "grpo"},
    "return_to_go": {"credit": "return_to_go"},
    "discounted": {"credit": {"name": "return_to_go", "discount": 0.9}},
    "gigpo": {"credit": "gigpo"},
    "salt": {"credit": "salt"},
    # Two roots of a group of eight, each branching twice: as many leaves as the others have episodes.
    "tree": {"credit": "tree", "rollout.strategy": {"name": "tree", "at": [1, 4]}},
}


class Run(NamedTuple):
    """One training run: its name, its folder and what it changes in the recipe."""

    name: str
    folder: Path
    overrides: Mapping[str, Any]

    @property
    def done(self) -> bool:
        """Whether it came to its verdict."""
        return (self.folder / "report.html").exists()


def main() -> None:
    options = read_options()
    start = Run("start", options.out / "start", {"updates": 0})
    runs = [variant(options.out, method, seed) for seed in range(options.seeds) for method in options.methods]
    if options.one:
        train_one(options.recipe, next(run for run in (start, *runs) if run.name == options.one))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    carry_out(start, options.out)
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(lambda run: carry_out(run, options.out), runs))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("recipe", help="a recipe with a warm start")
    parser.add_argument("out", type=Path, help="where the runs go")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def variant(out: Path, method: str, seed: int) -> Run:
    """A method's run with one seed, from the common start."""
    model = {"path": str(out / "start/checkpoints/step-000000/model")}
    changes = {"seed": seed, "model": model, "warm_start": None, **METHODS[method]}
    return Run(f"{method}-{seed}", out / f"{method}-{seed}", changes)


def carry_out(run: Run, out: Path) -> None:
    """Train in a process of its own, for an engine must be alone in its process."""
    if run.done:
        return
    began = time.monotonic()
    with open(out / f"{run.name}.log", "w", encoding="utf-8") as log:
        ended = subprocess.run([sys.executable, *sys.argv, "--one", run.name], stderr=log, check=False)
    verdict = "FAILED" if ended.returncode else "done"
    print(f"{run.name}: {verdict} in {time.monotonic() - began:.0f} s", flush=True)


def train_one(recipe: str, run: Run) -> None:
    from turnwise.trainers.trainer import train

    train(recipe, run.folder, dict(run.overrides), resume=run.folder.exists())


if __name__ == "__main__":
    main()
