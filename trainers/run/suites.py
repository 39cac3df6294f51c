"""The mean success of a policy on several suites, weighted by their shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.evaluation.statistics import Interval


class MeanSuccess(NamedTuple):
    """The weighted mean of success on several suites, with a 95 % interval, and of the score."""

    success: float
    success_interval: Interval
    mean_score: float


def weighted_mean(found: Sequence[Evaluation], shares: Sequence[float]) -> MeanSuccess:
    """The mean of evaluations of different suites, whose ``shares`` sum to 1.

    The interval is that of Zou and Donner (2008, eq. 4–5): each of its sides is the root of the summed squares of the
    suites' own, so that the interval of one suite is its own.
    """
    if len(found) == 1:
        return MeanSuccess(found[0].success, found[0].success_interval, found[0].mean_score)
    success = sum(share * one.success for share, one in zip(shares, found, strict=True))
    below = above = 0.0
    for share, one in zip(shares, found, strict=True):
        below += (share * (one.success - one.success_interval.low)) ** 2
        above += (share * (one.success_interval.high - one.success)) ** 2
    score = sum(share * one.mean_score for share, one in zip(shares, found, strict=True))
    return MeanSuccess(success, Interval(success - below**0.5, success + above**0.5), score)
