"""What reinforcement added in some runs of one recipe: success on test before and after it, with intervals.

    for s in 0 1 2; do turnwise train code-quick --out runs/code-$s --set seed=$s; done
    python benchmarks/learning/before_after.py runs/code-* [--into benchmarks/learning/code-quick]

Writes ``.json``, ``.md`` and ``.svg``. Intervals are of each run by itself, 95 %, clustered by task, as the report
has them; *apart* means that the interval after training lies above the one before it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import yaml

from turnwise.machine import describe

MODES = ("sampled", "greedy")


class Verdict(NamedTuple):
    """Success on test with its interval, and the mean number of turns."""

    success: float
    low: float
    high: float
    turns: float

    def __str__(self) -> str:
        return f"{self.success:.3f} [{self.low:.3f}, {self.high:.3f}]"


class Rise(NamedTuple):
    """One run: its verdicts by mode, the looks at dev by update, and how long it took."""

    seed: int
    before: dict[str, Verdict]
    after: dict[str, Verdict]
    updates: list[int]
    dev: list[float]
    rl_seconds: float

    def apart(self, mode: str) -> bool:
        """Whether the interval after training lies above the one before it."""
        return self.after[mode].low > self.before[mode].high


def read_run(run: Path) -> Rise:
    """What a finished run says of itself.

    Raises:
        ValueError: it has not come to its verdict.
    """
    rows = [json.loads(line) for line in (run / "evaluations.jsonl").read_text("utf-8").splitlines()]
    verdicts = {
        (row["name"], row["mode"]): Verdict(row["success"], *row["success_interval"], row["turns"])
        for row in rows
    }
    names = {name for name, _ in verdicts}
    if "after RL" not in names:
        raise ValueError(f"{run} has no verdict yet: go on with `turnwise train … --out {run} --resume`.")
    first = next(name for name in ("before", "warm start") if name in names)
    looks = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    updates = [row for row in looks if row["phase"] == "rl"]
    seen = [row for row in updates if "dev_success" in row]
    return Rise(
        yaml.safe_load((run / "recipe.yaml").read_text("utf-8"))["seed"],
        {mode: verdicts[first, mode] for mode in MODES},
        {mode: verdicts["after RL", mode] for mode in MODES},
        [row["update"] for row in seen],
        [row["dev_success"] for row in seen],
        sum(row["seconds"] for row in updates),
    )


def table(runs: Sequence[Rise]) -> str:
    """The verdicts as Markdown."""
    lines = [
        "| seed | sampled: before | after | apart | greedy: before | after | apart |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        cells = [
            str(cell)
            for mode in MODES
            for cell in (run.before[mode], run.after[mode], "yes" if run.apart(mode) else "no")
        ]
        lines.append(f"| {run.seed} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def as_data(runs: Sequence[Rise]) -> dict[str, Any]:
    """Everything, for the JSON file."""
    return {
        "machine": describe(),
        "runs": [
            {
                **run._asdict(),
                "before": {mode: run.before[mode]._asdict() for mode in MODES},
                "after": {mode: run.after[mode]._asdict() for mode in MODES},
            }
            for run in runs
        ],
    }


def plot(runs: Sequence[Rise], path: Path) -> None:
    """Success on dev over updates, and the verdicts on test as bars of error at both ends."""
    figure, axis = plt.subplots(figsize=(6, 3.6))
    for run in runs:
        (line,) = axis.plot(run.updates, run.dev, label=f"seed {run.seed}, dev")
        for at, found in ((0, run.before["sampled"]), (run.updates[-1], run.after["sampled"])):
            spread = [[found.success - found.low], [found.high - found.success]]
            axis.errorbar([at], [found.success], spread, fmt="o", capsize=3, color=line.get_color())
    axis.set(xlabel="updates", ylabel="success, sampled (dots: test, 95 %)", ylim=(0, 1))
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    runs = sorted(map(read_run, options.runs))
    print(table(runs))
    if options.into:
        options.into.with_suffix(".md").write_text(table(runs), "utf-8")
        options.into.with_suffix(".json").write_text(json.dumps(as_data(runs), indent=1) + "\n", "utf-8")
        plot(runs, options.into.with_suffix(".svg"))


if __name__ == "__main__":
    main()
