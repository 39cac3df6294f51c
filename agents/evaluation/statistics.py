"""The numbers of an evaluation, and how far they can be trusted.

Episodes of one task resemble each other, so every interval here is clustered by task: what counts as
independent is the task, not the episode. Formulas are in each docstring; notation: n episodes, G tasks
(clusters), ``confidence`` 0.95 unless said otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from turnwise.agents.evaluation.distributions import normal_quantile, t_quantile
from turnwise.errors import TurnwiseError

_ROUNDING = 1e-12  # a standard error below this is the rounding of equal values


class Interval(NamedTuple):
    """A confidence interval, both ends included."""

    low: float
    high: float


class Estimate(NamedTuple):
    """A mean with its interval, and how much it rests on."""

    mean: float
    interval: Interval
    n: int  # values
    clusters: int  # tasks they come from


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that at least one of k runs succeeds, estimated without bias from c successes in n runs.

    1 − C(n−c, k) / C(n, k)  (Chen et al. 2021, arXiv 2107.03374, eq. 1). The plug-in 1 − (1 − c/n)^k is
    biased low (0.8319 in the third case) and is not used.

    By hand: n=10, c=3: k=1 → 1 − 7/10; k=2 → 1 − 21/45; k=5 → 1 − 21/252.

    >>> [round(pass_at_k(10, 3, k), 4) for k in (1, 2, 5)]
    [0.3, 0.5333, 0.9167]
    """
    _check_counts(n, c, k)
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that all of k runs succeed (pass^k), estimated without bias from c successes in n runs.

    C(c, k) / C(n, k)  (Yao et al. 2024, τ-bench, arXiv 2406.12045, §3).

    By hand: n=4, c=3: 3/4, 3/6, 1/4, 0/1.

    >>> [pass_hat_k(4, 3, k) for k in (1, 2, 3, 4)]
    [0.75, 0.5, 0.25, 0.0]
    """
    _check_counts(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def wilson(successes: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion from n *independent* trials (n may be an effective size).

    centre (p + z²/2n) / (1 + z²/n), half width z √(p(1−p)/n + z²/4n²) / (1 + z²/n). With n = 0: [0, 1].

    By hand, 8 of 10 and z² = 3.8415: centre 0.99207/1.38415 = 0.71674, half width
    1.95996 · √(0.016 + 0.0096037) / 1.38415 = 0.22657.

    >>> [round(x, 4) for x in wilson(8, 10)], [round(x, 4) for x in wilson(0, 10)]
    ([0.4902, 0.9433], [0.0, 0.2775])
    """
    if n <= 0:
        return Interval(0.0, 1.0)
    return _score_interval(successes / n, n, normal_quantile((1 + confidence) / 2))


def _score_interval(p: float, n: float, z: float) -> Interval:
    scale = 1 + z * z / n
    centre = (p + z * z / (2 * n)) / scale
    half = z * math.sqrt(max(p * (1 - p), 0.0) / n + z * z / (4 * n * n)) / scale
    # At 0 and 1 the interval touches p exactly; rounding must not push it past.
    return Interval(max(0.0, min(centre - half, p)), min(1.0, max(centre + half, p)))


def clustered_mean(
    values: Sequence[float], clusters: Sequence[Hashable], *, confidence: float = 0.95
) -> Estimate:
    """Mean of all values, with an interval that treats the values of one cluster as one observation.

    SE² = G/(G−1) · Σ_g (Σ_{i∈g} (x_i − x̄))² / n²  (cluster-robust, CR1), times the t quantile with G−1
    degrees of freedom. With one value per cluster this is the ordinary s/√n interval. One cluster
    says nothing about others: its interval is infinite.

    By hand: tasks [1,1,0,1], [0,0,0,1], [1,1,1,1] have residual sums 1/3, −5/3, 4/3, so
    SE = √(1.5 · 14/3) / 12 = 0.22048 and t(0.975; 2) = 4.30265.

    >>> mean, interval, n, g = clustered_mean([1,1,0,1, 0,0,0,1, 1,1,1,1], [0]*4 + [1]*4 + [2]*4)
    >>> round(mean, 4), round(mean - interval.low, 4), n, g
    (0.6667, 0.9486, 12, 3)
    """
    x, labels = _aligned(values, clusters)
    g = int(labels.max()) + 1
    mean = float(x.mean())
    if g == 1:
        return Estimate(mean, Interval(-math.inf, math.inf), x.size, 1)
    half = t_quantile((1 + confidence) / 2, g - 1) * _clustered_se(x, labels)
    return Estimate(mean, Interval(mean - half, mean + half), x.size, g)


def score_mean(
    scores: Sequence[float], clusters: Sequence[Hashable], *, confidence: float = 0.95
) -> Estimate:
    """Mean score; where all scores lie in [0, 1] its interval does too, otherwise :func:`clustered_mean`'s.

    Near a bound the distribution of a mean is skewed, and x̄ ± t·SE passes the bound. The interval is instead
    all μ that a quasi-score test with the variance φ·μ(1−μ)/n does not refuse (fractional responses as in
    Papke & Wooldridge 1996): (x̄ − μ)² ≤ t² · μ(1−μ) / n_eff, n_eff = x̄(1−x̄) / SE², with SE and t (G−1 degrees
    of freedom) of :func:`clustered_mean`. It is Wilson's interval for n_eff trials with t instead of z, and so
    has Wilson's closed form. Where the tasks do not differ at all, each counts once: n_eff = G.

    In simulations (tests/agents/test_statistics.py) of 5 to 200 tasks it holds the truth in 92 to 100 %, where
    x̄ ± t·SE comes down to 23 %.

    By hand, two tasks of scores 0.2 and 0.6: SE = 0.2, n_eff = 0.24 / 0.04 = 6, t(0.975; 1) = 12.7062,
    t²/n_eff = 26.908: centre (0.4 + 13.454) / 27.908 = 0.49642,
    half width 12.7062 · √(0.24/6 + 161.4476/144) / 27.908 = 0.49060.

    >>> mean, (low, high), n, g = score_mean([0.2, 0.6], "ab")
    >>> round(mean, 4), round(low, 4), round(high, 4), n, g
    (0.4, 0.0058, 0.987, 2, 2)
    """
    estimate = clustered_mean(scores, clusters, confidence=confidence)
    x, labels = _aligned(scores, clusters)
    g, mean = estimate.clusters, estimate.mean
    if g == 1 or x.min() < 0 or x.max() > 1:
        return estimate
    se, variance = _clustered_se(x, labels), mean * (1 - mean)
    effective = variance / se**2 if variance > 0 and se > _ROUNDING else float(g)
    t = t_quantile((1 + confidence) / 2, g - 1)
    return estimate._replace(interval=_score_interval(mean, effective, t))


def student_mean(values: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """Mean of independent values, such as what runs with different seeds came to: x̄ ± t · s/√n.

    >>> estimate = student_mean([0.4, 0.5, 0.6])
    >>> round(estimate.mean, 4), [round(x, 4) for x in estimate.interval]
    (0.5, [0.2516, 0.7484])
    """
    return clustered_mean(values, range(len(values)), confidence=confidence)


def share_mean(values: Sequence[float], *, confidence: float = 0.95) -> Estimate:
    """:func:`student_mean` of shares, such as each run's success: no share is below 0 or above 1, and so the interval is not.

    >>> [round(x, 4) for x in share_mean([0.9, 1.0, 0.95]).interval]
    [0.8258, 1.0]
    """
    estimate = student_mean(values, confidence=confidence)
    return estimate._replace(interval=within(estimate.interval, 0.0, 1.0))


def within(interval: Interval, low: float, high: float) -> Interval:
    """An interval without what its quantity cannot be, which loses no coverage; one that is infinite stays: it is unknown.

    >>> within(Interval(-0.2, 0.4), 0.0, 1.0), within(Interval(-math.inf, math.inf), 0.0, 1.0)
    (Interval(low=0.0, high=0.4), Interval(low=-inf, high=inf))
    """
    if not math.isfinite(interval.high - interval.low):
        return interval
    return Interval(max(low, min(interval.low, high)), min(high, max(interval.high, low)))


def holm(p_values: Sequence[float]) -> list[float]:
    """p values adjusted so that the chance of even one false alarm among all of them is kept (Holm 1979).

    The i-th smallest of m (from 0) is multiplied by m − i; none becomes smaller than one before it, or larger than 1.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    m, largest = len(p_values), 0.0
    adjusted = [1.0] * m
    for rank, index in enumerate(sorted(range(m), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (m - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def proportion(
    successes: Sequence[bool], clusters: Sequence[Hashable], *, confidence: float = 0.95
) -> Estimate:
    """Share of successes, with Wilson's interval on the *effective* number of episodes.

    n_eff = n / deff, deff = max(1, SE²_clustered / (p(1−p)/(n−1))) (design effect; Wilson on n_eff as in
    Dean & Pagano 2015, "Evaluating confidence interval methods for binomial proportions in clustered
    surveys"). One episode per task gives deff = 1: the plain Wilson interval. Where all episodes agree
    there is nothing to estimate deff from, and each task counts once: n_eff = G.

    By hand, the tasks of :func:`clustered_mean`: deff = 0.0486111 / (0.222222/11) = 2.40625, n_eff = 4.9870.

    >>> estimate = proportion([1,1,0,1, 0,0,0,1, 1,1,1,1], [0]*4 + [1]*4 + [2]*4)
    >>> [round(x, 4) for x in estimate.interval] == [round(x, 4) for x in wilson(4.98701 * 2/3, 4.98701)]
    True
    """
    x, labels = _aligned([float(bool(success)) for success in successes], clusters)
    n, g, p = x.size, int(labels.max()) + 1, float(x.mean())
    effective = float(g)
    if 0 < p < 1 and g > 1:
        effective = n / max(1.0, _clustered_se(x, labels) ** 2 * (n - 1) / (p * (1 - p)))
    elif 0 < p < 1:
        effective = 1.0
    return Estimate(p, wilson(p * effective, effective, confidence=confidence), n, g)


def _clustered_se(x: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    sums = np.bincount(labels, weights=x - x.mean())
    return math.sqrt(sums.size / (sums.size - 1) * float(sums @ sums)) / x.size


def _aligned(
    values: Sequence[float], clusters: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    if not len(values) or len(values) != len(clusters):
        raise TurnwiseError(
            f"{len(values)} values with {len(clusters)} cluster labels have no mean.",
            "Give at least one value, and one label for each.",
        )
    numbers: dict[Hashable, int] = {}
    labels = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    return np.asarray(values, dtype=np.float64), np.asarray(labels, dtype=np.int64)


def _check_counts(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and 1 <= k <= n):
        raise TurnwiseError(
            f"pass@{k} cannot be estimated from {c} successes in {n} runs.",
            "It needs 1 ≤ k ≤ n: play each task at least k times.",
        )
