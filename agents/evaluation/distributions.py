"""The few distributions that intervals and tests need, so that an evaluation needs no scipy (110 MB).

Each is compared with scipy's in tests/agents/test_distributions.py, over the range that is used here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_TINY = 1e-300
_CLOSE = 1e-16


def normal_quantile(p: float) -> float:
    """The z below which a standard normal variable lies with chance p.

    >>> round(normal_quantile(0.975), 5)
    1.95996
    """
    return NormalDist().inv_cdf(p)


def normal_tail(z: float) -> float:
    """Chance that a standard normal variable exceeds z.

    >>> round(normal_tail(1.959964), 6)
    0.025
    """
    return math.erfc(z / math.sqrt(2)) / 2


def t_tail(t: float, freedom: float) -> float:
    """Chance that Student's t with these degrees of freedom exceeds t.

    I_x(ν/2, 1/2) / 2 with x = ν / (ν + t²) for t ≥ 0, the regularised incomplete beta function.

    By hand, one degree of freedom is the Cauchy distribution: 1/2 − arctan(1)/π = 1/4.

    >>> round(t_tail(1.0, 1), 12), round(t_tail(4.302653, 2), 6)
    (0.25, 0.025)
    """
    square = t * t
    tail = _beta_share(square / (freedom + square), freedom / (freedom + square), freedom / 2) / 2
    return tail if t >= 0 else 1 - tail


@functools.lru_cache(256)
def t_quantile(p: float, freedom: float) -> float:
    """The t below which Student's t with these degrees of freedom lies with chance p, for 0 < p < 1.

    >>> round(t_quantile(0.975, 2), 5), round(t_quantile(0.025, 1), 4)
    (4.30265, -12.7062)

    Raises:
        ValueError: p is no such chance, or there are no degrees of freedom.
    """
    if not 0 < p < 1 or freedom <= 0:
        raise ValueError(f"Student's t with {freedom:g} degrees of freedom has no quantile at {p:g}.")
    if p == 0.5:
        return 0.0
    tail = min(p, 1 - p)
    high = 1.0
    while t_tail(high, freedom) > tail:
        high *= 2
    found = _root(lambda t: t_tail(t, freedom) - tail, 0.0, high)
    return found if p > 0.5 else -found


def fair_coin_p_value(heads: int, tosses: int) -> float:
    """Two-sided exact p of so many heads in tosses of a fair coin (McNemar's exact test).

    By hand, 1 of 4: 2 · (1 + 4) / 16.

    >>> fair_coin_p_value(1, 4), fair_coin_p_value(2, 4)
    (0.625, 1.0)
    """
    few = min(heads, tosses - heads)
    count, total = 1, 1  # C(n, i) from C(n, i−1), in whole numbers
    for i in range(1, few + 1):
        count = count * (tosses - i + 1) // i
        total += count
    return min(1.0, 2 * total / (1 << tosses)) if tosses else 1.0


def sign_flip_p_value(values: NDArray[np.float64], resamples: int, seed: int) -> float:
    """Two-sided p of a mean if each value were as likely with the other sign (a permutation test).

    All sign patterns are tried where there are no more than ``resamples``; otherwise so many are drawn and the
    observed one is counted with them, so that p is never 0.

    By hand, 1, 2, 3 with one sign: 1 of 8 patterns has a mean that large, on each side.

    >>> sign_flip_p_value(np.array([1.0, 2.0, 3.0]), 10_000, seed=0)
    0.25
    """
    observed = float(values.mean())
    slack = 1e-14 * abs(observed)  # equal means may differ by the order of their sum
    means = np.concatenate([(signs * values).mean(1) for signs in _signs(values.size, resamples, seed)])
    extra = 0 if _are_all_tried(values.size, resamples) else 1
    above, below = int((means >= observed - slack).sum()), int((means <= observed + slack).sum())
    return min(1.0, 2 * (min(above, below) + extra) / (means.size + extra))


def sign_flip_interval(
    values: NDArray[np.float64], resamples: int, seed: int, *, alpha: float = 0.05
) -> tuple[float, float]:
    """The means that :func:`sign_flip_p_value` of the values less such a mean does not refuse; infinite where it refuses none.

    A sign pattern counts against μ if the mean of the values that it flips lies on the other side of μ, so the ends are
    order statistics of these means (Hartigan 1969, "Using subsample values as typical values").

    By hand, 1, …, 6: one of 64 patterns flips nothing, and 0.05 · 64 / 2 = 1.6, so the ends are the smallest and the largest
    of the other means. With five values 0.05 · 32 / 2 < 1: none is refused.

    >>> sign_flip_interval(np.arange(1.0, 7.0), 10_000, seed=0), sign_flip_interval(np.arange(5.0), 10_000, seed=0)
    ((1.0, 6.0), (-inf, inf))
    """
    found: list[NDArray[np.float64]] = []
    patterns = 0
    for signs in _signs(values.size, resamples, seed):
        flipped = signs < 0
        counts = flipped.sum(1)
        patterns += len(counts)
        some = counts > 0
        found.append((flipped[some] @ values) / counts[some])
    means = np.sort(np.concatenate(found))
    extra = 0 if _are_all_tried(values.size, resamples) else 1
    against = patterns - means.size + extra  # those that flip nothing count against every mean
    rank = math.ceil(alpha * (patterns + extra) / 2 - against)
    return (float(means[rank - 1]), float(means[-rank])) if rank > 0 else (-math.inf, math.inf)


def _are_all_tried(n: int, resamples: int) -> bool:
    return n < 63 and 1 << n <= resamples


def _signs(n: int, resamples: int, seed: int) -> Iterator[NDArray[np.float64]]:
    """Sign patterns of n values: all of them, or so many at random; in slices, so that many values need little memory."""
    if _are_all_tried(n, resamples):
        flipped = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
        yield (1 - 2 * flipped).astype(np.float64)
        return
    rng = np.random.default_rng(seed)
    size = max(1, 2**20 // n)
    for start in range(0, resamples, size):
        yield rng.choice((-1.0, 1.0), (min(size, resamples - start), n))


def _beta_share(one: float, other: float, a: float) -> float:
    """I_x(a, 1/2) at x = other = 1 − one; both are given since either may be tiny."""
    if one <= 0:
        return 1.0
    if other <= 0:
        return 0.0
    b = 0.5
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(other) + b * math.log(one)
    )
    if other < (a + 1) / (a + b + 2):
        return front * _fraction(other, a, b) / a
    return 1 - front * _fraction(one, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method (DLMF 8.17.22)."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return value


def _away(x: float) -> float:
    return x if abs(x) > _TINY else _TINY


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find the zero of a falling function, by halving until the two ends are neighbours."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
