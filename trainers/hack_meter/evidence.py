"""Evidence that a rate is above a level, which may be looked at after every observation, and bounds of a mean.

Both are tests by betting. A gambler begins with 1 and stakes on each observation x between 0 and 1; if its mean, given all before,
is at most the level, no stake has an expected gain, and by Ville's inequality (1939) the capital ever reaches 1/α with a chance of
at most α. So the capital is evidence (an e-process) and whoever stops at 1/α gives a false alarm in at most a share α of all runs,
however long they are and however often they are looked at. Of the factors, 1 + λ·(x − level), see Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting" (JRSSB 2024, 2010.09686).

A run may be honest for long before it is not. So one gambler begins before each observation, with a share 1/(k·(k + 1)) of the
capital before the k-th: the sum of the shares is 1, and the late ones have lost nothing meanwhile (mixtures over the moment of the
change, as in Shin, Ramdas and Rinaldo, "E-detectors", 2203.03532, there for the run length in place of a chance of false alarm).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

STAKES = (0.02, 0.08, 0.25, 0.6, 0.9)
"""Shares of the capital that gamblers stake against the level, equally many each."""
_BOUND_STAKES = (0.1, 0.25, 0.5, 0.75, 1.0)
_HALVINGS = 30


class Capital(NamedTuple):
    """Capital of the gamblers after some observations.

    Attributes:
        seen: how many observations.
        logs: of each stake, the logarithm of the capital of those who have begun.
    """

    seen: int = 0
    logs: tuple[float, ...] = (-math.inf,) * len(STAKES)

    @property
    def log(self) -> float:
        """The logarithm of the whole capital, those who have not begun among it; 0 at first.

        >>> Capital().log
        0.0
        """
        waiting = -math.log1p(self.seen)
        return _log_sum([waiting, *(one - math.log(len(STAKES)) for one in self.logs)])

    def after(self, x: float, level: float) -> Capital:
        """Return the capital after another observation, on which all stake that its mean is above the level.

        Worked by hand: the first gamblers have half of the capital, and stakes of 0.02, 0.08, 0.25, 0.6 and 0.9 against a level of 0.5 are
        doubled, so that they have ½·(1.02 + 1.08 + 1.25 + 1.6 + 1.9)/5.

        >>> round(math.exp(Capital().after(1.0, 0.5).log) - 0.5, 6)
        0.685
        """
        begins = -math.log((self.seen + 1) * (self.seen + 2))
        logs = (
            _log_sum([log, begins]) + math.log1p(stake * (x - level) / level)
            for log, stake in zip(self.logs, STAKES, strict=True)
        )
        return Capital(self.seen + 1, tuple(logs))


def evidence(xs: Iterable[float], level: float) -> float:
    """Return the logarithm of the evidence that observations between 0 and 1 have means above a level.

    >>> evidence([0.0] * 100, 0.01) < 0 < evidence([0.0] * 100 + [1.0] * 3, 0.01)
    True
    """
    capital = Capital()
    for x in xs:
        capital = capital.after(x, level)
    return capital.log


def upper_bound(xs: Sequence[float], miss: float) -> float:
    """Return what the mean of these observations is at most, but for a chance of ``miss``; 1 where there are none.

    It is the least level against which gamblers who stake on less do not end with 1/``miss``.

    Worked by hand: of zeros alone those who stake all have a fifth of the capital and end with (1 − level)^−n of it.

    >>> round(upper_bound([0.0] * 64, 0.01), 3), round(1 - (0.01 / 5) ** (1 / 64), 3)
    (0.089, 0.093)
    """
    low, high = (sum(xs) / len(xs) if xs else 1.0), 1.0
    for _ in range(_HALVINGS):
        level = (low + high) / 2
        if level >= 1 or _against(xs, level) < -math.log(miss):
            low = level
        else:
            high = level
    return high


def _against(xs: Sequence[float], level: float) -> float:
    """The logarithm of the capital of those who stake that the mean is below a level."""
    logs: list[float] = []
    for stake in _BOUND_STAKES:
        factors = [1 - stake * (x - level) / (1 - level) for x in xs]
        logs.append(sum(math.log(f) for f in factors) if min(factors, default=1.0) > 0 else -math.inf)
    return _log_sum(logs) - math.log(len(logs))


def _log_sum(logs: Sequence[float]) -> float:
    """The logarithm of the sum of numbers that are given by theirs."""
    most = max(logs)
    return most if most == -math.inf else most + math.log(math.fsum(math.exp(one - most) for one in logs))
