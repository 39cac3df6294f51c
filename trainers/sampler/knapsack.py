"""Episodes of an update are packed where they are worth most, by what was known of each task's success."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import ceil, log

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup
from turnwise.trainers.sampler.remembered import FromPool, require_option


def value(n: int, p: float) -> float:
    """v(n, p) = [1 − pⁿ − (1 − p)ⁿ]·p·(1 − p)²: the chance that n episodes differ, times what they then gain.

    >>> [round(value(*of), 4) for of in ((2, 0.5), (8, 0.5), (8, 0.1), (8, 0.9))]
    [0.0625, 0.124, 0.0461, 0.0051]
    """
    return (1 - p**n - (1 - p) ** n) * p * (1 - p) ** 2


def needed(p: float, confidence: float = 0.9) -> int:
    """The episodes after which a task of 0 < p < 1 has shown a difference with this confidence, about.

    >>> needed(0.1), needed(0.25), needed(0.5)
    (22, 9, 4)
    """
    return ceil(log(1 - confidence) / log(max(p, 1 - p)))


def packed(
    rates: Sequence[float | None],
    budget: int,
    usual: int,
    *,
    least: int = 2,
    most: int = 128,
    confidence: float = 0.9,
) -> list[int]:
    """The number of episodes of each task, ``budget`` in all; ``rates`` are None where a task was never seen, which gets ``usual``.

    v is concave in n, so that giving one episode after the other to the task that gains most is the best packing.

    >>> packed([0.1, 0.5, 0.9], 24, 8, most=20)
    [15, 7, 2]
    >>> packed([0.0, 0.5, 1.0, None], 32, 8)  # the live task needs 4; what it leaves goes to the one that was never solved
    [18, 4, 2, 8]
    """
    counts = [usual if rate is None else least for rate in rates]
    live = [i for i, rate in enumerate(rates) if rate is not None and 0 < rate < 1]
    dead = [i for i, rate in enumerate(rates) if rate == 0]
    spare = budget - sum(counts)
    wanted = sum(max(0, min(most, needed(rates[i] or 0.0, confidence)) - least) for i in live)
    surplus = max(0, spare - wanted) if dead else 0
    surplus -= _evenly(counts, dead, surplus, most)
    spare = budget - sum(counts)
    queue = [(_loss(counts[i], rates[i] or 0.0), i) for i in live]
    heapq.heapify(queue)
    while spare and queue:
        _, i = heapq.heappop(queue)
        if counts[i] < most:
            counts[i] += 1
            spare -= 1
            heapq.heappush(queue, (_loss(counts[i], rates[i] or 0.0), i))
    _evenly(counts, range(len(counts)), spare, most)
    return counts


def _loss(n: int, p: float) -> float:
    """Minus what the next episode adds, rounded so that equal tasks are equal."""
    return -round(value(n + 1, p) - value(n, p), 12)


def _evenly(counts: list[int], among: Sequence[int], spare: int, most: int) -> int:
    """Give one each in turn; return what could be given."""
    given = 0
    while spare > given and any(counts[i] < most for i in among):
        for i in among:
            if counts[i] < most and given < spare:
                counts[i] += 1
                given += 1
    return given


@component("sampler", "knapsack", paper="2509.25849")
class Knapsack(FromPool):
    """Tasks of a pool, with as many episodes each as pay: at most Σ v(n, p) for groups × group_size episodes.

    Knapsack RL (Li et al. 2025): v(n, p) = [1 − pⁿ − (1 − p)ⁿ]·p(1 − p)², p being the task's success in all its earlier visits.
    A task that was solved never or always has ``least`` episodes, a new one group_size; what tasks with 0 < p < 1 need not for a
    difference with ``confidence`` goes to those that were never solved. Each task weighs the same in the update, so that the objective
    is that of the pool: ours, since the book does not say. Costs are 1 per episode, not tokens.

    >>> from turnwise.trainers.core import PartState
    >>> from turnwise.trainers.sampler.core import example_setup
    >>> sampler = Knapsack(example_setup(most=4), size=4)
    >>> sampler.restore(PartState({"0": [1, 4.0, 2.0, 0], "1": [1, 4.0, 4.0, 0], "2": [1, 4.0, 0.0, 0]}))
    >>> sorted((one.index, one.episodes) for one in sampler.plan(1, 0, 4))  # half, all, none, and a new one: 16 in all
    [(0, 4), (1, 2), (2, 6), (3, 4)]
    """

    unbiased = True
    over = "the tasks of its pool, each as likely as any other, whatever number of episodes they have"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        size: int = 256,
        least: int = 2,
        most: int = 128,
        confidence: float = 0.9,
    ) -> None:
        super().__init__(setup, size)
        usual = setup.group_size
        require_option(
            "knapsack",
            2 <= least <= usual <= most,
            f"least={least} and most={most} do not hold the group_size of {usual}",
            "Give 2 ≤ least ≤ rollout.group_size ≤ most.",
        )
        require_option(
            "knapsack", 0 < confidence < 1, f"confidence {confidence:g} is none", "Give one between 0 and 1."
        )
        self.least, self.most, self.confidence = least, most, confidence

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset(range(self.least, self.most + 1))

    def chosen(self, update: int) -> list[GroupRequest]:
        setup = self.setup
        drawn = derive_rng("pool", setup.seed, update).sample(range(self.size), setup.most)
        known = [self.known(index) for index in drawn]
        counts = packed(
            [task.rate if task.episodes else None for task in known],
            setup.most * setup.group_size,
            setup.group_size,
            least=self.least,
            most=self.most,
            confidence=self.confidence,
        )
        return [self.request(index, n) for index, n in zip(drawn, counts, strict=True)]
