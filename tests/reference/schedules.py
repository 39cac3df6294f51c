"""Schedules: a number at each update, from the run's length, or from a metric."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import cos, exp, pi

from plain import Refused, reference

from turnwise.trainers.core import ScheduleMoment


def way(now: ScheduleMoment, over: int, after: int) -> float:
    """How much of the way is behind after ``after`` updates of waiting; without ``over`` the last update ends it."""
    length = over if over else now.updates - 1 - after
    if now.update < after:
        return 0.0
    return (now.update - after) / length if now.update - after < length else 1.0


@reference("schedule", "linear", to=[0.7, -1.0], over=[4, -1], after=[3, -1])
def linear(now: ScheduleMoment, to: float = 0.0, over: int = 0, after: int = 0) -> float:
    if over < 0 or after < 0:
        raise Refused
    x = way(now, over, after)
    return (1 - x) * now.first + x * to


@reference(
    "schedule", "cosine", to=[0.7, -1.0], over=[4, -1], after=[3, -1], restarts=[True], ramp=[5, 1, -1],
    also=[{"restarts": True, "over": 3, "after": 2, "to": 0.7}, {"restarts": True, "over": 1}, {"to": 0.7, "ramp": 3, "after": 3, "over": 5}],
)  # fmt: skip
def cosine(
    now: ScheduleMoment, to: float = 0.0, over: int = 0, after: int = 0, restarts: bool = False, ramp: int = 0
) -> float:
    if over < 0 or after < 0 or ramp < 0:
        raise Refused
    behind = way(now, over, after)
    if restarts and over:
        left = max(0, now.update - after)
        while left >= over:
            left -= over
        behind = left / over
    first = cos(pi / 2 * behind) ** 2
    return (first * now.first + (1 - first) * to) * (now.update / ramp if now.update < ramp else 1)


@reference(
    "schedule", "decay", factor=[0.3, 1.2], every=[1, 3], low=[0.9], smooth=[True],
    also=[{"every": 2, "smooth": True}, {"every": 0}, {"factor": 0.0}, {"every": 1, "low": 0.2}],
)  # fmt: skip
def decay(
    now: ScheduleMoment, factor: float = 0.7, every: int = 100, low: float = 0.0, smooth: bool = False
) -> float:
    if every < 1 or factor <= 0:
        raise Refused
    x = now.first
    for _ in range(now.update // every):
        x *= factor
    x *= factor ** (now.update % every / every) if smooth else 1.0
    return max(x, low)


@reference("schedule", "epo")
def epo(now: ScheduleMoment) -> float:
    x = 2 * now.update / now.updates  # 1 is half of the run
    return now.first * (0.8 + 0.2 * exp(-2 * x) if x <= 1 else 0.8 * exp(3 - 3 * x))


@reference(
    "schedule", "steps", at=[(2, 5)], values=[(0.5, 0.25)],
    also=[{"at": (5, 2), "values": (1.0, 2.0)}, {"at": (3, 3), "values": (1.0, 2.0)}, {"at": (0,), "values": (7.0,)}],
)  # fmt: skip
def steps(now: ScheduleMoment, at: tuple[int, ...] = (), values: tuple[float, ...] = ()) -> float:
    if len(at) != len(values) or any(b <= a for a, b in itertools.pairwise(at)):
        raise Refused
    number = now.first
    for start, value in zip(at, values, strict=True):
        if start <= now.update:
            number = value
    return number


@reference("schedule", "towards", metric=["seconds"], target=[0.3, 0.0], gain=[-0.5], limit=[0.05, -0.2])
def towards(
    now: ScheduleMoment,
    metric: str = "kl_reference",
    target: float = 0.1,
    gain: float = 0.1,
    limit: float = 0.2,
) -> float:
    if target == 0 or limit < 0 or (metric not in now.metrics and now.update >= 10):
        raise Refused
    if metric not in now.metrics:
        return now.last
    above = (now.metrics[metric] - target) / target
    return now.last + now.last * gain * (limit if above > limit else max(above, -limit))


def measured(now: ScheduleMoment, metric: str) -> float | None:
    """None before the first one; ten updates without it are too many."""
    if metric not in now.metrics and now.update >= 10:
        raise Refused
    return now.metrics.get(metric)


@reference(
    "schedule", "amft", metric=["kl_reference", "seconds"], target=[0.3], gain=[-0.5], low=[0.4], high=[0.6],
    also=[
        {"metric": "seconds", "gain": gain, "target": target} for gain in (0.7, -4.0) for target in (0.3, 0.5)
    ] + [{"metric": "kl_reference", "low": 0.9, "high": 0.2}, {"low": 0.5, "high": 0.5}, {"high": 0.3}],
)  # fmt: skip
def amft(
    now: ScheduleMoment,
    metric: str = "entropy",
    target: float = 0.5,
    gain: float = 5e-4,
    low: float = 0.05,
    high: float = 0.95,
) -> float:
    if low > high:
        raise Refused
    found = measured(now, metric)
    if found is None:
        return now.last
    mu = now.last + gain * (target - found)
    return max(low, min(mu, high))


@reference(
    "schedule", "sasr", metric=["kl_reference", "seconds"], usual=[0.3, 0.0, -1.0], gamma=[2.0, 0.0, -1.0], rest=[True],
    also=[
        {"metric": "seconds", "usual": 0.3}, {"metric": "seconds", "gamma": 0.2, "rest": True},
        {"metric": "kl_reference", "usual": -1.0, "gamma": -1.0},
    ],
)  # fmt: skip
def sasr(
    now: ScheduleMoment,
    metric: str = "source/demonstrations/nll",
    usual: float = 1.0,
    gamma: float = 1.0,
    rest: bool = False,
) -> float:
    if usual <= 0 or gamma <= 0:
        raise Refused
    found = measured(now, metric)
    if found is None:
        return now.last
    odds = max(0.0, found) / (gamma * usual)
    return now.first / (1 + odds) * (1.0 if rest else odds)


@reference(
    "schedule", "prorl", metric=["seconds"], patience=[2, 0, -1], divergence=["seconds"], most=[0.05, 0.0, -1.0],
    every=[5, 1, -1],
    also=[
        {"patience": 1, "most": 0.0}, {"patience": 3, "most": 0.0, "every": 4}, {"patience": 0, "most": 0.0, "every": 7},
        {"patience": 0, "most": 0.0}, {"metric": "nowhere"}, {"metric": "nowhere", "patience": 0},
        {"metric": "seconds", "patience": 2, "divergence": "seconds", "most": 0.25},
    ],
)  # fmt: skip
def prorl(
    history: Sequence[ScheduleMoment],
    metric: str = "dev_success",
    patience: int = 4,
    divergence: str = "kl_reference",
    most: float = 0.1,
    every: int = 0,
) -> float:
    """Counted from the beginning: resets of a whole history, each of which cuts off what was before it."""
    if patience < 0 or most < 0 or every < 0 or patience == most == every == 0:
        raise Refused
    resets, begin, since = 0, 0, 0
    for n, now in enumerate(history):
        if patience and now.update > now.updates / 2 and metric not in now.metrics:
            raise Refused
        measured = [one.metrics[metric] for one in history[begin : n + 1] if metric in one.fresh]
        after_best = len(measured) - 1 - measured.index(max(measured)) if measured else 0
        kl = now.metrics[divergence] if divergence in now.fresh else 0.0
        if (
            (patience and after_best >= patience)
            or (most and kl > most)
            or (every and now.update - since >= every)
        ):
            resets, begin, since = resets + 1, n + 1, now.update
    return history[0].first + resets
