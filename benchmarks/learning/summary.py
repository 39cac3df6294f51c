"""What compare.py found: success on test with intervals over seeds, and success on dev at equal steps and tokens.

    python benchmarks/learning/summary.py OUT [--into benchmarks/learning/household-easy]

Writes ``.json``, ``.md`` and ``.svg``. Intervals are Student's t over seeds, 95 %.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from turnwise.machine import describe


class Curve(NamedTuple):
    """One run: what it had cost when it was looked at, and its success then."""

    steps: Sequence[float]
    tokens: Sequence[float]
    success: Sequence[float]

    def at(self, cost: str, budget: float) -> float:
        """Success when so much was spent, by linear interpolation."""
        return float(np.interp(budget, getattr(self, cost), self.success))


class Mean(NamedTuple):
    """A mean over seeds, with its 95 % interval."""

    mean: float
    low: float
    high: float
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_of(values: Sequence[float]) -> Mean:
    """Student's t interval over seeds."""
    n, centre = len(values), float(np.mean(values))
    half = stats.t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n) if n > 1 else float("nan")
    return Mean(centre, centre - half, centre + half, n)


def read_curve(run: Path) -> Curve:
    """The looks at dev, and the cost of everything that was played until then, forks among it."""
    steps = tokens = 0.0
    found: list[tuple[float, float, float]] = []
    for line in (run / "metrics.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["phase"] != "rl":
            continue
        steps, tokens = steps + row["steps"], tokens + row["tokens"]
        if "dev_success" in row:
            found.append((steps, tokens, row["dev_success"]))
    return Curve(*(list(column) for column in zip(*found, strict=True)))


def verdicts(run: Path) -> dict[str, float]:
    """Success on test by (when, how it sampled)."""
    rows = map(json.loads, (run / "evaluations.jsonl").read_text("utf-8").splitlines())
    return {f"{row['name']}, {row['mode']}": row["success"] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    curves: dict[str, list[Curve]] = defaultdict(list)
    judged: dict[str, list[dict[str, float]]] = defaultdict(list)
    for report in sorted(options.out.glob("*-[0-9]*/report.html")):
        method = report.parent.name.rpartition("-")[0]
        curves[method].append(read_curve(report.parent))
        judged[method].append(verdicts(report.parent))
    text, data = table(curves, judged)
    print(text)
    if options.into:
        options.into.with_suffix(".md").write_text(text, "utf-8")
        options.into.with_suffix(".json").write_text(
            json.dumps({"machine": describe(), **data}, indent=1) + "\n"
        )
        plot(curves, options.into.with_suffix(".svg"))


def table(
    curves: Mapping[str, Sequence[Curve]], judged: Mapping[str, Sequence[Mapping[str, float]]]
) -> tuple[str, dict[str, Any]]:
    """The results as Markdown and as data. Budgets are what the cheapest run of all spent."""
    every = [curve for several in curves.values() for curve in several]
    budget = {cost: min(getattr(curve, cost)[-1] for curve in every) for cost in ("steps", "tokens")}
    lines = [
        (
            f"| rule | seeds | dev at {budget['steps']:,.0f} steps | dev at {budget['tokens']:,.0f} tokens "
            "| test, sampled: before | after | test, greedy: after | after, sampled, minus `grpo` |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    data: dict[str, Any] = {"budget": budget, "rules": {}}
    for method, several in curves.items():
        cells = [mean_of([curve.at(cost, budget[cost]) for curve in several]) for cost in budget]
        for name in ("before, sampled", "after RL, sampled", "after RL, greedy"):
            cells.append(mean_of([result[name] for result in judged[method]]))
        cells.append(mean_of(differences(judged[method], judged["grpo"])))
        lines.append(f"| `{method}` | {len(several)} | " + " | ".join(map(str, cells)) + " |")
        data["rules"][method] = {
            "curves": [curve._asdict() for curve in several],
            "test": judged[method],
            "cells": [cell._asdict() for cell in cells],
        }
    return "\n".join(lines) + "\n", data


def differences(ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]]) -> list[float]:
    """After training, sampled, seed by seed: equal seeds play equal tasks."""
    name = "after RL, sampled"
    return [a[name] - b[name] for a, b in zip(ours, theirs, strict=False)]


def plot(curves: Mapping[str, Sequence[Curve]], path: Path) -> None:
    """Mean success on dev over steps and over tokens, with the interval over seeds."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    for axis, cost in zip(axes, ("steps", "tokens"), strict=True):
        for method, several in curves.items():
            first = max(getattr(curve, cost)[0] for curve in several)
            last = min(getattr(curve, cost)[-1] for curve in several)
            grid = np.linspace(first, last, 40)
            band = [mean_of([curve.at(cost, x) for curve in several]) for x in grid]
            axis.plot(grid, [m.mean for m in band], label=method)
            axis.fill_between(grid, [m.low for m in band], [m.high for m in band], alpha=0.12)
        axis.set_xlabel("environment steps" if cost == "steps" else "tokens read and sampled")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("success on dev")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)


if __name__ == "__main__":
    main()
