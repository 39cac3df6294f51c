"""Upper bounds of an error rate that hold whatever the distribution of the errors is.

Both invert a p-value, so that the true rate lies above the bound in at most a share ``miss`` of all samples of any size: this is what
conformal risk control calls a certificate (Bates et al. 2021, "Distribution-free, risk-controlling prediction sets", 2101.02703).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

_HALVINGS = 40


def binomial_below(k: int, n: int, p: float) -> float:
    """Return the chance that at most k of n independent trials of chance p succeed.

    By hand, two tosses of a fair coin: 1/4 and 3/4.

    >>> round(binomial_below(0, 2, 0.5), 12), round(binomial_below(1, 2, 0.5), 12), binomial_below(2, 2, 0.5)
    (0.25, 0.75, 1.0)
    """
    if k >= n or p <= 0:
        return 1.0
    if p >= 1:
        return 0.0
    log = n * math.log1p(-p)
    logs = [log]
    for i in range(1, k + 1):
        log += math.log((n - i + 1) / i) + math.log(p) - math.log1p(-p)
        logs.append(log)
    most = max(logs)
    return min(1.0, math.exp(most) * math.fsum(math.exp(x - most) for x in logs))


def clopper_pearson(k: int, n: int, miss: float) -> float:
    """Return an upper bound of the rate of which k in n independent trials were seen: the p of which as few are seen with the chance ``miss``.

    By hand: of none in n it is 1 − miss^(1/n); of all there is no bound.

    >>> round(clopper_pearson(0, 200, 0.05), 6), round(1 - 0.05 ** (1 / 200), 6), clopper_pearson(3, 3, 0.05)
    (0.014867, 0.014867, 1.0)
    """
    return _least(lambda p: binomial_below(k, n, p), k / n if n else 1.0, miss)


def at_least(k: int, n: int, miss: float) -> float:
    """Return the lower bound of Clopper and Pearson: 1 less the upper one of what did not happen.

    >>> at_least(0, 10, 0.05), round(at_least(10, 10, 0.05), 4), round(0.05 ** 0.1, 4)
    (0.0, 0.7411, 0.7411)
    """
    return 1 - clopper_pearson(n - k, n, miss) if n else 0.0


def hoeffding_bentkus(values: Sequence[float], miss: float) -> float:
    """Return an upper bound of the mean of independent values between 0 and 1, such as the share of errors of each task.

    With the mean R of n values the p-value of a rate α is the lesser of exp(−n·h(min(R, α), α)), h(a, b) = a·ln(a/b) +
    (1 − a)·ln((1 − a)/(1 − b)), and e·P(Bin(n, α) ≤ ⌈n·R⌉) (Bates et al. 2021, after Hoeffding 1963 and Bentkus 2004). Where the values are
    all 0 or 1, :func:`clopper_pearson` is exact and taken instead.

    By hand, four values of 1/2: h(1/2, α) = −ln(4α(1 − α))/2 is ln(20)/4 at 4α(1 − α) = 20^(−1/2).

    >>> round(hoeffding_bentkus([0.5] * 4, 0.05), 4), round((1 + (1 - 20 ** -0.5) ** 0.5) / 2, 4)
    (0.9406, 0.9406)
    >>> hoeffding_bentkus([0, 0, 1], 0.05) == clopper_pearson(1, 3, 0.05)
    True
    """
    n = len(values)
    if all(x in (0, 1) for x in values):
        return clopper_pearson(round(sum(values)), n, miss)
    mean = sum(values) / n

    def chance(rate: float) -> float:
        near = math.exp(-n * _divergence(min(mean, rate), rate))
        return min(near, math.e * binomial_below(math.ceil(n * mean - 1e-9), n, rate))

    return _least(chance, mean, miss)


def _divergence(a: float, b: float) -> float:
    left = a * math.log(a / b) if a else 0.0
    return left + ((1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0)


def _least(chance: Callable[[float], float], low: float, miss: float) -> float:
    """The least rate, from ``low`` on, whose chance is below ``miss``; 1 where there is none."""
    high = 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle >= 1 or chance(middle) >= miss:
            low = middle
        else:
            high = middle
    return high
