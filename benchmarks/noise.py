"""Do intervals of `turnwise compare --noise` hold the truth, and do the tasks that it names tell two policies apart? noise.json has both.

    python benchmarks/noise.py

Coverage: tasks have chances of their own, drawn anew, and so has their mean, between 0.1 and 0.9: at one mean the counts of whole tasks let
no interval hold the truth in exactly 95 %. Power: two policies whose chances differ by a shift on a part of the tasks; the number of tasks is
asked of pairs that showed the true difference, and the chance that a test tells fresh pairs of that size apart should be four in five: exactly
for McNemar's test, from series for that by sign flips.
"""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from turnwise.agents.evaluation.comparison import paired_difference
from turnwise.agents.evaluation.statistics import wilson
from turnwise.machine import describe
from turnwise.trainers.compare.foreign_results import TaskResults
from turnwise.trainers.compare.noise import noise, run_noise

RESULT = Path(__file__).with_name("noise.json")
SERIES, PAIRS, ASKED = 4000, 300, 25


def table(scores_TK: np.ndarray) -> TaskResults:
    """Scores by task and trial as results."""
    return TaskResults("", "", {str(t): tuple(row) for t, row in enumerate(scores_TK.astype(float).tolist())})


def coverage(tasks: int, trials: int, alike: float, rng: np.random.Generator) -> dict[str, Any]:
    """The share of series whose interval holds the mean chance of the population of tasks."""
    held = 0
    for _ in range(SERIES):
        truth = rng.uniform(0.1, 0.9)
        chance_T = rng.beta(alike * truth, alike * (1 - truth), size=tasks)
        found = run_noise(table(rng.random((tasks, trials)) < chance_T[:, None]))
        held += found.estimate.interval.low <= truth <= found.estimate.interval.high
    return {
        "tasks": tasks, "trials": trials, "beta_a_plus_b": alike, "coverage": round(held / SERIES, 4),
        "interval": [round(x, 4) for x in wilson(held, SERIES)],
    }  # fmt: skip


def singles(base: float, gain: float, disagree: float, rng: np.random.Generator) -> dict[str, Any]:
    """Tasks that are played once: what is named for McNemar's test, and its exact power there."""

    def pair(tasks: int) -> tuple[np.ndarray, np.ndarray]:
        first = rng.random(tasks) < base
        up, down = (disagree + gain) / 2 / (1 - base), (disagree - gain) / 2 / base
        return first[:, None], np.where(first, rng.random(tasks) >= down, rng.random(tasks) < up)[:, None]

    tasks = asked(pair, gain)
    return {
        "base": base,
        "gain": gain,
        "disagree": disagree,
        "tasks": tasks,
        "told_apart": round(power_of_mcnemar(tasks, disagree, gain), 4),
    }


def power_of_mcnemar(tasks: int, disagree: float, gain: float) -> float:
    """The chance that the exact test tells the two apart: over the number of tasks on which they differ, and of those that are won."""
    total = 0.0
    for differ in range(tasks + 1):
        weight = float(binom.pmf(differ, tasks, disagree))
        if weight < 1e-12:
            continue
        most = int(binom.ppf(0.025, differ, 0.5)) - 1  # losses up to which p is below 0.05
        while 2 * binom.cdf(most + 1, differ, 0.5) < 0.05:
            most += 1
        share = (disagree + gain) / 2 / disagree
        total += weight * float(
            binom.cdf(most, differ, share) + binom.cdf(most, differ, 1 - share) if most >= 0 else 0.0
        )
    return total


def several(gain: float, trials: int, alike: float, rng: np.random.Generator) -> dict[str, Any]:
    """Tasks that are played several times: what is named for the test by sign flips, and how often it tells fresh pairs of that size apart."""

    def pair(tasks: int) -> tuple[np.ndarray, np.ndarray]:
        chance = rng.beta(alike / 2, alike / 2, size=(tasks, 1))
        # A part of the distance to 1 is gained, so that chances stay chances.
        after = chance + 2 * gain * (1 - chance)
        return rng.random((tasks, trials)) < chance, rng.random((tasks, trials)) < after

    tasks, told = asked(pair, gain), 0
    for _ in range(PAIRS):
        first, second = map(table, pair(tasks))
        told += paired_difference(first.scores, second.scores).p_value < 0.05
    return {
        "gain": gain, "trials": trials, "beta_a_plus_b": alike, "tasks": tasks, "told_apart": round(told / PAIRS, 4),
        "interval": [round(x, 4) for x in wilson(told, PAIRS)],
    }  # fmt: skip


def asked(pair: Any, gain: float) -> int:
    """The median of the tasks that are named for pairs that showed the true difference."""
    named: list[int] = []
    while len(named) < ASKED:
        first, second = pair(400)
        if math.isclose(second.mean() - first.mean(), gain, abs_tol=0.04 * gain):
            more = noise([table(first)._replace(label="a"), table(second)._replace(label="b")]).pairs[0].more
            named.append(more or 0)
    return round(statistics.median(named))


def main() -> None:
    rng = np.random.default_rng(0)
    spreads = [(50, 1, 2.0), (50, 4, 2.0), (50, 4, 0.6), (114, 4, 5.0), (300, 1, 2.0), (500, 2, 1.5)]
    gains = [(0.5, 0.1, 0.3), (0.4, 0.15, 0.35), (0.6, 0.08, 0.2), (0.3, 0.2, 0.4), (0.8, 0.05, 0.1)]
    found = {
        "machine": describe(),
        "series": SERIES,
        "coverage": [coverage(*one, rng) for one in spreads],
        "power": [singles(*one, rng) for one in gains],
        "power_of_sign_flips": [several(0.08, 4, 2.0, rng), several(0.05, 2, 0.6, rng)],
        "pairs": PAIRS,
    }
    RESULT.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    for name in ("coverage", "power", "power_of_sign_flips"):
        print(*found[name], sep="\n")


if __name__ == "__main__":
    main()
