"""Comparison of two policies: paired by task, over seeds, or by their intervals where pairs are unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnwise.agents.evaluation.distributions import (
    fair_coin_p_value,
    normal_quantile,
    normal_tail,
    sign_flip_interval,
    sign_flip_p_value,
    t_quantile,
    t_tail,
)
from turnwise.agents.evaluation.statistics import Estimate, Interval, within
from turnwise.errors import TurnwiseError

RESAMPLES = 10_000
ALPHA = 0.05
_ROUNDING = 1e-12  # a spread below this is the rounding of equal values


@dataclass(frozen=True)
class SuccessDifference:
    """``after`` against ``before``, with a 95 % interval and a test.

    Attributes:
        before, after: their means over what they share.
        difference: after − before.
        interval: 95 % interval of it.
        p_value: two-sided.
        n: how many of ``unit`` it rests on.
        unit: what is independent: ``"tasks"`` or ``"seeds"``.
        unpaired: tasks or seeds that only one side has, and which are left out.
        method: the test's name.
        alpha: below which p is significant.
        differ: how many tasks the two differ on, which limits how small p can be; None where the test has no such limit.
    """

    before: float
    after: float
    difference: float
    interval: Interval
    p_value: float
    n: int
    unpaired: int
    method: str
    unit: str = "tasks"
    alpha: float = ALPHA
    differ: int | None = None

    @property
    def significant(self) -> bool:
        return self.p_value < self.alpha

    @property
    def verdict(self) -> str:
        """In plain words."""
        return f"The difference is {'' if self.significant else 'not '}significant"

    @property
    def test(self) -> str:
        """The test on which the verdict rests, in words."""
        if self.method == NOT_PAIRED:
            return self.method
        said = f"{self.method} over {self.n} {self.unit}, {p_text(self.p_value)}"
        return f"{said}; {self.limit}" if self.limit else said

    @property
    def limit(self) -> str:
        """Why the test cannot find a difference; empty where it can."""
        if self.differ is None or 2 * 0.5**self.differ < self.alpha:
            return ""
        few = (
            f"1 {self.unit.removesuffix('s')} differs"
            if self.differ == 1
            else f"{self.differ} {self.unit} differ"
        )
        return f"p < {self.alpha:g} is impossible where {few}"

    def __str__(self) -> str:
        low, high = self.interval
        known = math.isfinite(high - low)
        interval = f"{low:+.3f} … {high:+.3f}" if known else "unknown"
        return f"{self.verdict}: {self.difference:+.3f}, 95 % interval {interval} ({self.test})."

    def to_json(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "interval": [end if math.isfinite(end) else None for end in self.interval],
            "p_value": self.p_value,
            "significant": self.significant,
            "n": self.n,
            "unit": self.unit,
            "unpaired": self.unpaired,
            "method": self.method,
        }


NOT_PAIRED, MCNEMAR = "Newcombe's interval, not paired", "McNemar"


def p_text(p_value: float) -> str:
    """
    >>> p_text(0.0386), p_text(0.00001)
    ('p = 0.039', 'p < 0.001')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"


def paired_difference(
    before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]], *, seed: int = 0
) -> SuccessDifference:
    """Compare two policies on the same tasks; each maps a task id to the results of its episodes.

    The difference is the mean over shared tasks of (mean after − mean before). The test is McNemar's exact one where
    each task has one 0/1 result per side (two-sided, Binomial(m, ½) on the m discordant tasks), and otherwise a sign-flip
    permutation test of the mean difference. The interval holds the differences that the sign-flip test does not refuse,
    within −1 and 1 where all results are: it leaves 0 out exactly where p < 0.05.

    By hand: 10 tasks only ``after`` solves, 2 only ``before``: p = 2 · (1+12+66)/4096 = 0.0386.

    >>> before = {str(i): [float(i < 2)] for i in range(20)}
    >>> after = {str(i): [float(2 <= i < 12)] for i in range(20)}
    >>> result = paired_difference(before, after)
    >>> round(result.difference, 4), round(result.p_value, 4), result.significant
    (0.4, 0.0386, True)

    Raises:
        TurnwiseError: they share no task.
    """
    shared = [task for task in before if task in after and len(before[task]) and len(after[task])]
    if not shared:
        raise TurnwiseError(
            "The two evaluations share no task, so they cannot be compared in pairs.",
            "Evaluate both on the same suite, split and number of episodes.",
        )
    a = np.array([float(np.mean(before[task])) for task in shared], dtype=np.float64)
    b = np.array([float(np.mean(after[task])) for task in shared], dtype=np.float64)
    single = all(len(before[task]) == len(after[task]) == 1 for task in shared)
    binary = single and bool(np.isin(np.concatenate([a, b]), (0.0, 1.0)).all())
    p_value, method = (_mcnemar(a, b), MCNEMAR) if binary else (_sign_flip(b - a, seed), "sign-flip test")
    return SuccessDifference(
        before=float(a.mean()),
        after=float(b.mean()),
        difference=float((b - a).mean()),
        interval=_interval(
            b - a, p_value, seed, shares=bool(min(a.min(), b.min()) >= 0 and max(a.max(), b.max()) <= 1)
        ),
        p_value=p_value,
        n=len(shared),
        unpaired=len(set(before) ^ set(after)),
        method=method,
        differ=int((np.abs(b - a) > _ROUNDING).sum()),
    )


def unpaired_difference(before: Estimate, after: Estimate) -> SuccessDifference:
    """Compare two policies by their intervals, where nobody knows which task was solved by whom.

    The interval is :func:`difference_interval`'s. p is that of a normal difference whose 95 % interval reaches as far
    towards zero as this one, so that p < 0.05 says the same as an interval without zero.

    >>> from turnwise.agents.evaluation.statistics import wilson
    >>> a, b = Estimate(48/80, wilson(48, 80), 80, 80), Estimate(56/70, wilson(56, 70), 70, 70)
    >>> found = unpaired_difference(a, b)
    >>> round(found.difference, 4), round(found.p_value, 4), found.test
    (0.2, 0.0079, "Newcombe's interval, not paired")
    """
    difference, interval = after.mean - before.mean, difference_interval(before, after)
    reach = difference - interval.low if difference > 0 else interval.high - difference
    if difference == 0 or not math.isfinite(reach):
        p_value = 1.0
    else:
        z = abs(difference) / max(reach, _ROUNDING) * normal_quantile(0.975)
        p_value = 2 * normal_tail(z)
    clusters = min(before.clusters, after.clusters)
    return SuccessDifference(before.mean, after.mean, difference, interval, p_value, clusters, 0, NOT_PAIRED)


def difference_over_seeds(before: Mapping[int, float], after: Mapping[int, float]) -> SuccessDifference:
    """Compare two methods by what their runs came to; each maps a run's seed to its success.

    Where both have the same seeds, Student's t of the differences by seed (equal seeds train on equal tasks);
    otherwise Welch's t. The interval ends where differences of shares do, at −1 and 1. Where the seeds of neither side differ there is nothing to estimate a spread from: the interval
    is infinite and p is 1.

    By hand, differences 0.1, 0.2, 0.3: mean 0.2, SE = 0.1/√3 = 0.057735, t = 3.4641 with 2 degrees of freedom.

    >>> found = difference_over_seeds({0: 0.3, 1: 0.3, 2: 0.3}, {0: 0.4, 1: 0.5, 2: 0.6})
    >>> round(found.difference, 4), [round(x, 4) for x in found.interval], round(found.p_value, 4)
    (0.2, [-0.0484, 0.4484], 0.0742)

    Raises:
        TurnwiseError: a side has fewer than two runs.
    """
    if min(len(before), len(after)) < 2:
        raise TurnwiseError(
            "One run says nothing of other seeds.", "Train each method with two seeds or more, better five."
        )
    a = np.array([before[seed] for seed in sorted(before)], dtype=np.float64)
    b = np.array([after[seed] for seed in sorted(after)], dtype=np.float64)
    same, difference = before.keys() == after.keys(), float(b.mean() - a.mean())
    parts = [x.var(ddof=1) / x.size for x in ((b - a,) if same else (a, b))]
    error = math.sqrt(float(sum(parts)))
    interval, p_value = Interval(-math.inf, math.inf), 1.0
    if error > _ROUNDING:
        sizes = (a.size,) if same else (a.size, b.size)
        freedom = error**4 / sum(float(part) ** 2 / (n - 1) for part, n in zip(parts, sizes, strict=True))
        half = t_quantile(0.975, freedom) * error
        interval = within(Interval(difference - half, difference + half), -1.0, 1.0)
        p_value = 2 * t_tail(abs(difference) / error, freedom)
    return SuccessDifference(
        before=float(a.mean()),
        after=float(b.mean()),
        difference=difference,
        interval=interval,
        p_value=p_value,
        n=len(a) if same else len(a) + len(b),
        unpaired=0,
        method="paired t test" if same else "Welch's t test",
        unit="seeds",
    )


def difference_interval(before: Estimate, after: Estimate) -> Interval:
    """Interval of ``after − before`` from two independent intervals, when no pairs are known.

    d − √((p₂−l₂)² + (u₁−p₁)²) … d + √((u₂−p₂)² + (p₁−l₁)²)  (Newcombe 1998, method 10).

    Newcombe's own example, 56/70 and 48/80 (his table II: 0.0524 to 0.3339):

    >>> from turnwise.agents.evaluation.statistics import wilson
    >>> a, b = Estimate(48/80, wilson(48, 80), 80, 80), Estimate(56/70, wilson(56, 70), 70, 70)
    >>> [round(x, 4) for x in difference_interval(a, b)]
    [0.0524, 0.3339]
    """
    p1, (l1, u1), p2, (l2, u2) = before.mean, before.interval, after.mean, after.interval
    return Interval(p2 - p1 - math.hypot(p2 - l2, u1 - p1), p2 - p1 + math.hypot(u2 - p2, p1 - l1))


def _mcnemar(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    gained, lost = int(((a == 0) & (b == 1)).sum()), int(((a == 1) & (b == 0)).sum())
    return fair_coin_p_value(gained, gained + lost)


def _sign_flip(difference: NDArray[np.float64], seed: int) -> float:
    if not difference.any() or difference.size < 2:
        return 1.0
    return sign_flip_p_value(difference, RESAMPLES, seed)


def _interval(difference: NDArray[np.float64], p_value: float, seed: int, *, shares: bool) -> Interval:
    if difference.size < 2:
        return Interval(-math.inf, math.inf)
    low, high = sign_flip_interval(difference, RESAMPLES, seed)
    if shares:
        low, high = max(low, -1.0), min(high, 1.0)
    if p_value >= ALPHA:  # McNemar's p is exact and the interval's patterns may be drawn; sums round
        return Interval(min(low, 0.0), max(high, 0.0))
    least = math.ulp(0.0)
    return Interval(max(low, least), high) if difference.mean() > 0 else Interval(low, min(high, -least))
