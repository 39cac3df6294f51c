"""Noise of evaluations: how far identical runs differ, which tasks flip, and how many more episodes tell two apart."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from turnwise.agents.evaluation.comparison import (
    MCNEMAR,
    SuccessDifference,
    paired_difference,
    unpaired_difference,
)
from turnwise.agents.evaluation.statistics import Estimate, clustered_mean, holm, score_mean
from turnwise.tasks.core import Json
from turnwise.trainers.compare.foreign_results import TaskResults

_TEST, _POWER = 1.959964, 0.841621
"""Normal quantiles of a two-sided test at 5 % and of 80 % power."""


class RunNoise(NamedTuple):
    """The noise of one evaluation.

    Attributes:
        results: as they were read.
        estimate: the mean score, with an interval clustered by task.
        trials: the fewest and the most trials of a task.
        flipped: the share of tasks with several trials whose trials differ; None where no task has several.
        floor: by so much do two runs of this very setting, on these tasks, with one trial each, differ in 95 % of cases at most;
            None where no task has several trials.
    """

    results: TaskResults
    estimate: Estimate
    trials: tuple[int, int]
    flipped: float | None
    floor: float | None


@dataclass(frozen=True)
class PairNoise:
    """Two evaluations beside each other.

    Attributes:
        labels: of the two.
        difference: the second less the first, paired where they share tasks.
        adjusted: its p-value corrected for the number of pairs (Holm).
        more: tasks, each with the trials that it has now, that would show a true difference of this size in four of five cases; None
            where it is 0.
        evidence: the e-value of the tasks on which they differ (a bet against equal chances, 2^m·B(b + 1, c + 1)): at 20 or more
            one may stop, however often one has looked; None where trials are several or scores are not 0 and 1.
    """

    labels: tuple[str, str]
    difference: SuccessDifference
    adjusted: float
    more: int | None
    evidence: float | None


@dataclass(frozen=True)
class Noise:
    """Noise of several evaluations."""

    runs: tuple[RunNoise, ...]
    pairs: tuple[PairNoise, ...]

    def to_json(self) -> dict[str, Json]:
        return {
            "runs": [
                {
                    "file": run.results.label, "form": run.results.form, "mean": run.estimate.mean, "interval": [end if math.isfinite(end) else None for end in run.estimate.interval],
                    "episodes": run.estimate.n, "tasks": len(run.results.scores), "left_out": run.results.left_out, "trials": [*run.trials],
                    "flipped": run.flipped, "floor": run.floor,
                }
                for run in self.runs
            ],
            "pairs": [
                {"of": [*pair.labels], **pair.difference.to_json(), "p_adjusted": pair.adjusted, "tasks_to_tell": pair.more, "e_value": pair.evidence}
                for pair in self.pairs
            ],
        }  # fmt: skip


def noise(results: Sequence[TaskResults]) -> Noise:
    """Measure the noise of evaluations, each by itself and each pair.

    Args:
        results: one evaluation or more; where they share tasks, pairs are compared task by task.
    """
    pairs = [*itertools.combinations(results, 2)]
    differences = [_difference(first, second) for first, second in pairs]
    adjusted = holm([one.p_value for one in differences])
    found = [
        PairNoise(
            (first.label, second.label),
            difference,
            p,
            _more(first, second, difference),
            _evidence(first, second),
        )
        for (first, second), difference, p in zip(pairs, differences, adjusted, strict=True)
    ]
    return Noise(tuple(map(run_noise, results)), tuple(found))


def run_noise(results: TaskResults) -> RunNoise:
    """Measure the noise of one evaluation.

    Two tasks of two trials: one flips, which has variance ½; two runs with one trial each differ with variance 2·(½ + 0)/2², so that
    1.96 standard deviations are 0.98.

    >>> found = run_noise(TaskResults("a", "table", {"x": (1.0, 0.0), "y": (1.0, 1.0)}))
    >>> found.flipped, round(found.floor or 0.0, 2), found.trials
    (0.5, 0.98, (2, 2))
    """
    values = [value for scores in results.scores.values() for value in scores]
    clusters = [task for task, scores in results.scores.items() for _ in scores]
    estimate = (
        score_mean(values, clusters)
        if all(0 <= value <= 1 for value in values)
        else clustered_mean(values, clusters)
    )
    several = {task: scores for task, scores in results.scores.items() if len(scores) > 1}
    counts = [len(scores) for scores in results.scores.values()]
    flipped = sum(len(set(scores)) > 1 for scores in several.values()) / len(several) if several else None
    floor = _TEST * math.sqrt(2 * _within(several) / len(results.scores)) if several else None
    return RunNoise(results, estimate, (min(counts), max(counts)), flipped, floor)


def _within(several: Mapping[str, Sequence[float]]) -> float:
    """The mean variance of a task's trials."""
    return sum(_variance(scores) for scores in several.values()) / len(several)


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _shared(first: TaskResults, second: TaskResults) -> list[str]:
    return [task for task in first.scores if task in second.scores]


def _difference(first: TaskResults, second: TaskResults) -> SuccessDifference:
    if len(_shared(first, second)) > 1:
        return paired_difference(first.scores, second.scores)
    return unpaired_difference(run_noise(first).estimate, run_noise(second).estimate)


def _more(first: TaskResults, second: TaskResults, difference: SuccessDifference) -> int | None:
    """Tasks that the pair's test needs to see a difference d of this size: (z_α·√m + z_β·s)²/d², by the spread of the tasks' differences.

    s² is their variance and m their mean square, which is their variance where the two are equal (Connor 1987). McNemar's exact test
    counts whole tasks, as if one fewer were won: n·d − 1 has to reach as far, so that n is ¼·(1 + √(1 + 4/(n·d)))² times as large.

    By hand: differences 1, 0, 0, 0 have the mean ¼, the variance and the mean square ¼, so 7.849 · ¼ / (1/16) = 31.4; this times
    ¼ · (1 + √(1 + 4/7.85))² is 39.

    >>> a = TaskResults("a", "table", {"a": (0.0,), "b": (0.0,), "c": (0.0,), "d": (1.0,)})
    >>> b = TaskResults("b", "table", {"a": (1.0,), "b": (0.0,), "c": (0.0,), "d": (1.0,)})
    >>> _more(a, b, _difference(a, b))
    39
    """
    size = abs(difference.difference)
    if size == 0:
        return None
    tasks = _shared(first, second)
    if len(tasks) > 1:
        gaps = [
            sum(second.scores[t]) / len(second.scores[t]) - sum(first.scores[t]) / len(first.scores[t])
            for t in tasks
        ]
        equal, spread = sum(gap**2 for gap in gaps) / len(gaps), _variance(gaps)
    else:
        equal = spread = sum(
            _variance([sum(s) / len(s) for s in one.scores.values()])
            for one in (first, second)
            if len(one.scores) > 1
        )
    needed = (_TEST * math.sqrt(equal) + _POWER * math.sqrt(spread)) ** 2 / size**2
    if difference.method == MCNEMAR:
        needed *= (1 + math.sqrt(1 + 4 / (needed * size))) ** 2 / 4
    return max(2, math.ceil(needed - 1e-9))


def _evidence(first: TaskResults, second: TaskResults) -> float | None:
    """The e-value of discordant tasks: 2^m·B(b + 1, c + 1), the mean over θ of how much better θ foretells them than ½.

    By hand: 5 for, 0 against: 32/6.

    >>> ones = TaskResults("a", "table", {str(n): (1.0,) for n in range(5)})
    >>> zeros = TaskResults("b", "table", {str(n): (0.0,) for n in range(5)})
    >>> round(_evidence(zeros, ones) or 0.0, 4)
    5.3333
    """
    tasks = _shared(first, second)
    singles = [(first.scores[task], second.scores[task]) for task in tasks]
    if not tasks or any(len(a) != 1 or len(b) != 1 or {a[0], b[0]} - {0.0, 1.0} for a, b in singles):
        return None
    wins, losses = sum(b[0] > a[0] for a, b in singles), sum(a[0] > b[0] for a, b in singles)
    log = (
        (wins + losses) * math.log(2)
        + math.lgamma(wins + 1)
        + math.lgamma(losses + 1)
        - math.lgamma(wins + losses + 2)
    )
    return math.exp(min(log, 700.0))
