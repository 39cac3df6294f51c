"""pass@k and pass^k of an evaluation: over which tasks, with an interval, and bounded by the runs that are missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from turnwise.agents.evaluation.statistics import Interval, pass_at_k, pass_hat_k, score_mean


class TaskRuns(NamedTuple):
    """A task: how often it was to be played, how many of these runs count, and how many of those solved it."""

    asked: int
    counting: int
    solved: int


class PassRate(NamedTuple):
    """A chance per task, averaged over the tasks that count k times.

    Attributes:
        value: None where no task counts k times.
        interval: 95 % interval of it, clustered by task.
        bound: over all tasks, if every missing run had failed, and if every one had been solved.
    """

    value: float | None
    interval: Interval | None
    bound: Interval


class PassRates(NamedTuple):
    """Both chances of an evaluation, and how many tasks they are of."""

    at: PassRate
    hat: PassRate
    tasks: int


def pass_rates(tasks: Sequence[TaskRuns], k: int) -> PassRates:
    """pass@k and pass^k. A task that a small split drew twice has twice the runs and counts twice, so that pass@1 = success.

    Ten tasks of four runs, seven solved always; the other three failed three times and lost a run each:

    >>> found = pass_rates([TaskRuns(4, 4, 4)] * 7 + [TaskRuns(4, 3, 0)] * 3, 4)
    >>> found.at.value, found.tasks, found.at.bound, found.hat.bound
    (1.0, 7, Interval(low=0.7, high=1.0), Interval(low=0.7, high=0.7))
    """
    enough = sum(task.counting >= k for task in tasks)
    return PassRates(_rate(tasks, k, pass_at_k), _rate(tasks, k, pass_hat_k), enough)


def _rate(tasks: Sequence[TaskRuns], k: int, chance: Callable[[int, int, int], float]) -> PassRate:
    values: list[float] = []
    names: list[int] = []
    for number, task in enumerate(tasks):
        if task.counting >= k:
            values += [chance(task.counting, task.solved, k)] * task.counting
            names += [number] * task.counting
    estimate = score_mean(values, names) if values else None
    runs = [max(task.asked, k) for task in tasks]
    low, high = (
        sum(n * chance(n, solved, k) for n, solved in zip(runs, worth, strict=True)) / sum(runs)
        for worth in (
            [task.solved for task in tasks],
            [task.solved + n - task.counting for n, task in zip(runs, tasks, strict=True)],
        )
    )
    if estimate is None:
        return PassRate(None, None, Interval(low, high))
    return PassRate(estimate.mean, estimate.interval, Interval(low, high))
