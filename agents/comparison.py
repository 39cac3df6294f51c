"""Two evaluations beside each other: paired by task, or by their intervals where no pairs are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from turnwise.agents.statistics import Estimate, Interval
from turnwise.errors import TurnwiseError

RESAMPLES = 10_000


@dataclass(frozen=True)
class Comparison:
    """``after`` against ``before`` on the tasks they share."""

    before: float
    after: float
    difference: float
    interval: Interval
    p_value: float
    tasks: int
    unpaired: int  # tasks that only one side has; left out
    method: str
    alpha: float = 0.05

    @property
    def significant(self) -> bool:
        return self.p_value < self.alpha

    @property
    def verdict(self) -> str:
        """In plain words."""
        return f"The difference is {'' if self.significant else 'not '}significant"

    @property
    def test(self) -> str:
        """What the verdict rests on."""
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.3f}"
        return f"{self.method} over {self.tasks} tasks, {p}"

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.verdict}: {self.difference:+.3f}, 95 % interval {low:+.3f} … {high:+.3f} ({self.test})."
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "interval": list(self.interval),
            "p_value": self.p_value,
            "significant": self.significant,
            "tasks": self.tasks,
            "unpaired": self.unpaired,
            "method": self.method,
        }


def compare(
    before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]], *, seed: int = 0
) -> Comparison:
    """Compare two policies on the same tasks; each maps a task id to the results of its episodes.

    The difference is the mean over shared tasks of (mean after − mean before), its interval the
    percentile bootstrap over tasks (10,000 resamples). The test is McNemar's exact one where each task
    has one 0/1 result per side (two-sided, Binomial(m, ½) on the m discordant tasks), and
    otherwise a sign-flip permutation test of the mean difference.

    By hand: 10 tasks only ``after`` solves, 2 only ``before``: p = 2 · (1+12+66)/4096 = 0.0386.

    >>> before = {str(i): [float(i < 2)] for i in range(20)}
    >>> after = {str(i): [float(2 <= i < 12)] for i in range(20)}
    >>> result = compare(before, after)
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
    p_value, method = (_mcnemar(a, b), "McNemar") if binary else (_sign_flip(b - a, seed), "sign-flip test")
    return Comparison(
        before=float(a.mean()),
        after=float(b.mean()),
        difference=float((b - a).mean()),
        interval=_bootstrap(b - a, seed),
        p_value=p_value,
        tasks=len(shared),
        unpaired=len(set(before) ^ set(after)),
        method=method,
    )


def difference_interval(before: Estimate, after: Estimate) -> Interval:
    """Interval of ``after − before`` from two independent intervals, when no pairs are known.

    d − √((p₂−l₂)² + (u₁−p₁)²) … d + √((u₂−p₂)² + (p₁−l₁)²)  (Newcombe 1998, method 10).

    Newcombe's own example, 56/70 and 48/80 (his table II: 0.0524 to 0.3339):

    >>> from turnwise.agents.statistics import wilson
    >>> a, b = Estimate(48/80, wilson(48, 80), 80, 80), Estimate(56/70, wilson(56, 70), 70, 70)
    >>> [round(x, 4) for x in difference_interval(a, b)]
    [0.0524, 0.3339]
    """
    p1, (l1, u1), p2, (l2, u2) = before.mean, before.interval, after.mean, after.interval
    return Interval(p2 - p1 - math.hypot(p2 - l2, u1 - p1), p2 - p1 + math.hypot(u2 - p2, p1 - l1))


def _mcnemar(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    gained, lost = int(((a == 0) & (b == 1)).sum()), int(((a == 1) & (b == 0)).sum())
    return float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def _sign_flip(difference: NDArray[np.float64], seed: int) -> float:
    if not difference.any() or difference.size < 2:
        return 1.0
    # scipy enumerates all sign patterns where there are few, and draws RESAMPLES of them otherwise.
    result = stats.permutation_test(
        (difference,),
        lambda x, axis: x.mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def _bootstrap(difference: NDArray[np.float64], seed: int) -> Interval:
    if difference.size < 2:
        return Interval(-math.inf, math.inf)
    rng = np.random.default_rng(seed)
    means = np.concatenate(  # in slices, so that many tasks need little memory
        [difference[rng.integers(0, difference.size, (100, difference.size))].mean(-1)
         for _ in range(RESAMPLES // 100)]
    )  # fmt: skip
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(low), float(high))
