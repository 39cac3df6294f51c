"""Episodes of an update are packed where they are worth most, by what was known of each task's success."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, log

from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup
from turnwise.trainers.sampler.remembered import FromPool, require_option


def gain(n: int, p: float) -> float:
    """v(n + 1, p) − v(n, p) = [pⁿ(1 − p) + (1 − p)ⁿp]·p(1 − p)²: what one episode more is worth, to the last digit.

    v(n, p) = [1 − pⁿ − (1 − p)ⁿ]·p(1 − p)² is the chance that n episodes differ, times what they then gain; v(1, p) = 0.
    """
    return (p**n * (1 - p) + (1 - p) ** n * p) * p * (1 - p) ** 2


def needed(p: float, confidence: float) -> int:
    """The episodes after which a task of 0 < p < 1 has shown a difference with this confidence, about."""
    return ceil(log(1 - confidence) / log(max(p, 1 - p)))


def packed(
    rates: Sequence[float | None], budget: int, usual: int, *, least: int, most: int, confidence: float
) -> list[int]:
    """The number of episodes of each task, ``budget`` in all; ``rates`` are None where a task was never seen, which gets ``usual``.

    v is concave in n, so that the largest gains of all tasks are the best packing.

    >>> packed([0.0, 0.5, 1.0, None], 32, 8, least=2, most=128, confidence=0.9)  # the second needs 4; the first gets what it leaves
    [18, 4, 2, 8]
    """
    counts = [usual if rate is None else least for rate in rates]
    live = {i: rate for i, rate in enumerate(rates) if rate is not None and 0 < rate < 1}
    dead = [i for i, rate in enumerate(rates) if rate == 0]
    wanted = sum(max(0, min(most, needed(p, confidence)) - least) for p in live.values())
    _evenly(counts, dead, max(0, budget - sum(counts) - wanted), most)
    gains = sorted((-gain(n, p), i) for i, p in live.items() for n in range(least, most))
    for _, i in gains[: budget - sum(counts)]:
        counts[i] += 1
    _evenly(counts, range(len(counts)), budget - sum(counts), most)
    return counts


def _evenly(counts: list[int], among: Sequence[int], spare: int, most: int) -> None:
    """Give one each in turn, to those that have less than ``most``."""
    turns = sorted((n - counts[i], i) for i in among for n in range(counts[i], most))
    for _, i in turns[:spare]:
        counts[i] += 1


@component("sampler", "knapsack", paper="2509.25849")
class Knapsack(FromPool):
    """Tasks of a pool, with as many episodes each as pay: at most Σ v(n, p) for groups × group_size episodes.

    Knapsack RL (Li et al. 2025): v(n, p) = [1 − pⁿ − (1 − p)ⁿ]·p(1 − p)², p being the task's success in all its earlier visits.
    A task that was solved never or always has ``least`` episodes, a new one group_size; what tasks with 0 < p < 1 need not for a
    difference with ``confidence`` goes to those that were never solved. Each task weighs the same in the update, so that the objective
    is that of the pool: ours, since the book does not say. Costs are 1 per episode, not tokens.

    Worked by hand from the book: v(n, p), the episodes that a difference needs, and a packing.

    >>> [round(sum(gain(m, p) for m in range(1, n)), 4) for n, p in ((2, 0.5), (8, 0.5), (8, 0.1), (8, 0.9))]
    [0.0625, 0.124, 0.0461, 0.0051]
    >>> [needed(p, confidence=0.9) for p in (0.1, 0.25, 0.5)]
    [22, 9, 4]
    >>> packed([0.1, 0.5, 0.9], 24, 8, least=2, most=20, confidence=0.9)
    [15, 7, 2]
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
