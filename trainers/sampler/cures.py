"""Tasks by the uncertainty of their success, with episodes by the noise of their gradient."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup
from turnwise.trainers.sampler.remembered import FromPool, require_option, softmax


def gradient_noise(p: float, right: Sequence[float], wrong: Sequence[float]) -> float:
    """σ of a task whose right and wrong episodes have these gradient norms.

    σ² = p(1−p)²·E[g_c²] + p²(1−p)·E[g_w²] − p²(1−p)²·(ḡ_c − ḡ_w)².

    >>> noises = [gradient_noise(0.25, [2], [1, 1, 1]), gradient_noise(0.5, [1], [1]), gradient_noise(0.75, [1, 1, 1], [3])]
    >>> [round(one, 4) for one in noises], shared_by(noises, 24, 4, 16)
    ([0.7578, 0.5, 1.0825], [8, 5, 11])
    """

    def moments(norms: Sequence[float]) -> tuple[float, float]:
        n = max(1, len(norms))
        return sum(norms) / n, sum(g * g for g in norms) / n

    (mean_c, square_c), (mean_w, square_w) = moments(right), moments(wrong)
    q = 1 - p
    return sqrt(max(0.0, p * q * q * square_c + p * p * q * square_w - (p * q * (mean_c - mean_w)) ** 2))


def shared_by(noises: Sequence[float], budget: int, least: int, most: int) -> list[int]:
    """round(budget·σ_i/Σσ), within [least, most]."""
    total = sum(noises) or 1.0
    return [min(most, max(least, round(budget * noise / total))) for noise in noises]


@component("sampler", "cures", paper="2510.01037")
class CurES(FromPool):
    """Tasks of a pool are drawn by exp(√(d(1 − d))/t), d = (c + 1)/(n + 2), and have episodes in proportion to σ = √(p(1 − p)).

    CurES (2025): c successes of n episodes give the posterior mean d; a task's share of the episodes follows the noise σ of its
    gradient, within [least, most], so that an update has about groups × group_size of them. σ is the book's with all gradient norms 1,
    which it allows where they cost too much; a new task counts as solved in half. Drawn without replacement, t = 0.1 (the released t,
    (c + 1)/0.01, makes all tasks alike): ours. Each task weighs the same in the update.

    Worked by hand from the book:

    >>> d = [(c + 1) / 6 for c in (0, 1, 2, 4)]
    >>> [round(x, 4) for x in softmax([sqrt(x * (1 - x)) for x in d], 0.1)]
    [0.1211, 0.3251, 0.4327, 0.1211]
    """

    over = "the tasks of its pool, each by the uncertainty of its success"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        size: int = 256,
        temperature: float = 0.1,
        least: int = 4,
        most: int = 16,
    ) -> None:
        super().__init__(setup, size)
        require_option(
            "cures", temperature > 0, f"temperature {temperature:g} draws nothing", "Give a number above 0."
        )
        require_option(
            "cures", 2 <= least <= most, f"[{least}, {most}] holds no group", "Give 2 ≤ least ≤ most."
        )
        self.temperature, self.least, self.most = temperature, least, most

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset(range(self.least, self.most + 1))

    def chosen(self, update: int) -> list[GroupRequest]:
        setup, rng = self.setup, derive_rng("cures", self.setup.seed, update)
        known = [self.known(index) for index in range(self.size)]
        means = [(task.successes + 1) / (task.episodes + 2) for task in known]
        likely = softmax([sqrt(d * (1 - d)) for d in means], self.temperature)
        left = list(range(self.size))
        drawn: list[int] = []
        for _ in range(setup.most):
            drawn += rng.choices(left, [likely[i] for i in left])
            left.remove(drawn[-1])
        rng.shuffle(drawn)
        rates = [known[i].rate if known[i].episodes else 0.5 for i in drawn]
        noises = [gradient_noise(p, [1.0], [1.0]) for p in rates]
        counts = shared_by(noises, setup.most * setup.group_size, self.least, self.most)
        return [self.request(index, n) for index, n in zip(drawn, counts, strict=True)]
