"""Tasks by the uncertainty of their success, with episodes by the noise of their gradient."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup
from turnwise.trainers.sampler.remembered import FromPool, require_option, softmax


def shared_by(noises: Sequence[float], budget: int, least: int, most: int) -> list[int]:
    """round(budget·σ_i/Σσ), within [least, most]; ``least`` of each where no task has noise."""
    if not any(noises):
        return [least for _ in noises]
    return [min(most, max(least, round(budget * noise / sum(noises)))) for noise in noises]


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
    >>> shared_by([0.7578, 0.5, 1.0825], 24, least=4, most=16)
    [8, 5, 11]
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

    def weights(self) -> list[float]:
        """Return how likely each task of the pool is to be the first of an update."""
        known = [self.known(index) for index in range(self.size)]
        means = [(task.successes + 1) / (task.episodes + 2) for task in known]
        return softmax([sqrt(d * (1 - d)) for d in means], self.temperature)

    def chosen(self, update: int) -> list[GroupRequest]:
        setup, rng, likely = self.setup, derive_rng("cures", self.setup.seed, update), self.weights()
        left = list(range(self.size))
        drawn: list[int] = []
        for _ in range(setup.most):
            drawn += rng.choices(left, [likely[i] for i in left])
            left.remove(drawn[-1])
        rng.shuffle(drawn)
        known = [self.known(index) for index in drawn]
        rates = [task.rate if task.episodes else 0.5 for task in known]
        noises = [sqrt(p * (1 - p)) for p in rates]
        counts = shared_by(noises, setup.most * setup.group_size, self.least, self.most)
        return [self.request(index, n) for index, n in zip(drawn, counts, strict=True)]
