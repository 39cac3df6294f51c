"""Do intervals of `turnwise compare --noise` hold the truth, and do the tasks that it names tell two policies apart? noise.json has both.

    python benchmarks/noise.py

Coverage: tasks have chances of their own, drawn anew; the share of series whose 95 % interval holds the mean chance. Power: two policies
whose chances differ by a shift on a part of the tasks; the number of tasks is asked of one pair, and the share of fresh pairs of that
size that McNemar's exact test tells apart should be four in five where the pair that was asked showed the true difference.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binomtest

from turnwise.machine import describe
from turnwise.trainers.compare.foreign_results import TaskResults
from turnwise.trainers.compare.noise import noise, run_noise

RESULT = Path(__file__).with_name("noise.json")
SERIES = 1500


def coverage(tasks: int, trials: int, spread: tuple[float, float], rng: np.random.Generator) -> float:
    """The share of series whose interval holds the mean chance of the population of tasks."""
    held, truth = 0, spread[0] / sum(spread)
    for _ in range(SERIES):
        chance = rng.beta(*spread, size=tasks)
        scores = rng.random((trials, tasks)) < chance
        found = run_noise(
            TaskResults("", "", {str(t): tuple(scores[:, t].astype(float)) for t in range(tasks)})
        )
        held += found.estimate.interval.low <= truth <= found.estimate.interval.high
    return held / SERIES


def power(base: float, gain: float, disagree: float, rng: np.random.Generator) -> dict[str, Any]:
    """Ask pairs of 400 tasks how many tasks tell them apart, and try that many on fresh pairs."""

    def pair(tasks: int) -> tuple[np.ndarray, np.ndarray]:
        first = rng.random(tasks) < base
        up, down = (disagree + gain) / 2 / (1 - base), (disagree - gain) / 2 / base
        second = np.where(first, rng.random(tasks) >= down, rng.random(tasks) < up)
        return first.astype(float), second.astype(float)

    asked = []
    while len(asked) < 25:
        first, second = pair(400)
        if abs((second - first).mean() - gain) < 0.004:  # which showed the true difference
            sides = [
                TaskResults(name, "", {str(n): (float(x),) for n, x in enumerate(side)})
                for name, side in (("a", first), ("b", second))
            ]
            asked.append(noise(sides).pairs[0].more)
    tasks = round(statistics.median(asked))
    told = 0
    for _ in range(SERIES):
        first, second = pair(tasks)
        wins, losses = int((second > first).sum()), int((second < first).sum())
        told += wins + losses > 0 and binomtest(wins, wins + losses).pvalue < 0.05
    return {
        "base": base,
        "gain": gain,
        "disagree": disagree,
        "tasks": tasks,
        "told_apart": round(told / SERIES, 3),
    }


def main() -> None:
    rng = np.random.default_rng(0)
    settings = [
        (50, 1, (1.0, 1.0)),
        (50, 4, (1.0, 1.0)),
        (50, 4, (0.3, 0.3)),
        (114, 4, (2.0, 3.0)),
        (300, 1, (1.0, 1.0)),
        (500, 2, (0.5, 1.0)),
    ]
    covered = [
        {"tasks": t, "trials": k, "beta": [*s], "coverage": round(coverage(t, k, s, rng), 3)}
        for t, k, s in settings
    ]
    powers = [power(0.5, 0.1, 0.3, rng), power(0.4, 0.15, 0.35, rng), power(0.6, 0.08, 0.2, rng)]
    RESULT.write_text(
        json.dumps({"machine": describe(), "series": SERIES, "coverage": covered, "power": powers}, indent=1)
        + "\n",
        "utf-8",
    )
    for one in (*covered, *powers):
        print(one)


if __name__ == "__main__":
    main()
