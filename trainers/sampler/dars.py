"""Tasks that a first stage found hard are played more often in a second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, sqrt
from statistics import mean
from typing import Literal

from turnwise.registry import component
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import require_option
from turnwise.trainers.sampler.uniform import Uniform

ROUNDS = 1e-9
"""What is taken from a number of episodes before it is rounded up, against rounding."""


def further(rate: float, usual: int, most: int, treats: str, *, std: bool) -> int:
    """ΔN: how often a task is played again of which ``usual`` episodes succeeded at this rate."""
    a = rate or 0.5 / usual
    if a >= 0.5:
        return 0
    mass, peak = (2 * sqrt(a * (1 - a)), usual) if std else (2 * a * (1 - a), usual / 2)
    wanted = 2 * (1 - a) * peak if treats == "hard" else peak
    return min(ceil((wanted - usual * mass) / mass - ROUNDS), most - usual)


@component("sampler", "dars", paper="2508.13755")
class Dars(Uniform):
    """New tasks in two stages: those that were solved in less than half of group_size episodes are played again in the same update.

    DARS (Yang et al. 2025): N = group_size episodes of success a (0 counts as 0.5/N) have the cumulative advantage N·S(a), S = 2a(1 − a),
    at most N/2; of a credit rule that divides by the deviation (``std``) S = 2√(a(1 − a)), at most N. The second stage adds
    ΔN = ⌈(P − N·S)/S⌉ episodes, where P is that peak (``treats: equal``) or 2(1 − a) times it (``hard``), up to ``most`` in all: the
    paper's are 32 and 64. Every episode weighs the same in the update, so that a task counts as often as it was played. Tasks without
    a success in the end, or without a failure, are the filter's (`informative`); the paper's breadth is optimizer.minibatches: 1 and
    epochs: 2. A group of which no episode counts is not played again: ours.

    Worked by hand from the book: ΔN for 0 to 4 successes of 8, equal and hard, then the same by deviation.

    >>> rates = [c / 8 for c in range(5)]
    >>> [further(a, 8, 32, "equal", std=False) for a in rates], [further(a, 8, 64, "hard", std=False) for a in rates]
    ([24, 11, 3, 1, 0], [56, 24, 8, 3, 0])
    >>> [further(a, 8, 32, "equal", std=True) for a in rates], [further(a, 8, 64, "hard", std=True) for a in rates]
    ([9, 5, 2, 1, 0], [23, 14, 6, 3, 0])
    """

    by_success = True
    adds = True
    unbiased = False
    over = "the suites' training tasks, each suite by its share and each task as often as it is played: hard ones more often"

    def __init__(
        self,
        setup: SamplerSetup,
        *,
        treats: Literal["hard", "equal"] = "hard",
        most: int = 64,
        std: bool = False,
    ) -> None:
        super().__init__(setup)
        require_option(
            "dars",
            most >= setup.group_size,
            f"most={most} is less than the group_size of {setup.group_size}",
            "Give rollout.group_size or more.",
        )
        self.treats, self.most, self.std = treats, most, std

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset(range(self.setup.group_size, self.most + 1))

    def again(self, update: int, groups: Sequence[SeenGroup]) -> list[GroupRequest]:
        usual = self.setup.group_size
        if any(group.request.episodes > usual for group in groups):  # both stages were played
            return super().again(update, groups)
        sizes = [
            usual
            + (further(group.rate, usual, self.most, self.treats, std=self.std) if group.episodes else 0)
            for group in groups
        ]
        return [
            replace(group.request, episodes=n, weight=n / mean(sizes))
            for group, n in zip(groups, sizes, strict=True)
        ]
