"""Episodes are added where the interval of a task's success would narrow most."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from math import log, sqrt
from statistics import stdev

from turnwise.agents.evaluation.distributions import t_quantile
from turnwise.registry import component
from turnwise.trainers.sampler.core import GroupRequest, SamplerSetup, SeenGroup
from turnwise.trainers.sampler.remembered import require_option
from turnwise.trainers.sampler.uniform import Uniform


@functools.cache
def half_width(n: int) -> float:
    """h(n)/σ̂ = t(0.975, n − 1)/√n: the half of a 95 % interval of a mean of n, in deviations."""
    return t_quantile(0.975, n - 1) / sqrt(n)


def deviation(group: SeenGroup) -> float:
    """σ̂ of a group's successes; where they are all alike √(p(1 − p)), p = ½/(n + 1) being Jeffreys' mean of what did not happen."""
    n, c = len(group.episodes), group.successes
    if 0 < c < n:
        return stdev([1.0] * c + [0.0] * (n - c))
    p = 0.5 / (n + 1)
    return sqrt(p * (1 - p))


def priority(sigma: float, n: int, bonus: float, total: int) -> float:
    """h(n) − h(n + 1) + c·√(ln(1 + T)/n): what one episode more than n is worth."""
    return sigma * (half_width(n) - half_width(n + 1)) + bonus * sqrt(log(1 + total) / n)


@component("sampler", "xrpo", paper="2510.06672")
class Xrpo(Uniform):
    """New tasks, played ``group_size`` times and then in ``phases``, each of which adds episodes where they are worth most.

    XRPO (2025), its allocation: with h(n) = t(0.975, n − 1)·σ̂/√n, half of the interval of a task's success, an episode more is worth
    h(n) − h(n + 1) + c·√(ln(1 + T)/n), T being the episodes of all tasks so far; the second term (``bonus`` c) seeks what was played
    little. A phase gives ``each`` episodes per task, one by one to the task of the highest priority, σ̂ and T being those of its
    beginning, up to ``most`` in all. Form of the bonus and sizes of phases are inferred. σ̂ = 0 is replaced by Jeffreys' (ours), σ̂ is of
    successes. Each task weighs the same in the update: ours. The paper's advantage is the shape `xrpo`; tasks that were never solved
    are not retried with solved ones in their prompt.

    Worked by hand from the book:

    >>> [round(0.5 * h, 4) for h in (half_width(4), half_width(5), half_width(4) - half_width(5))]
    [0.7956, 0.6208, 0.1748]
    >>> round(priority(0.5, 4, bonus=0.1, total=24), 4), round(0.1748 + 0.1 * (log(25) / 4) ** 0.5, 4)
    (0.2645, 0.2645)
    """

    by_success = True
    adds = True

    def __init__(
        self, setup: SamplerSetup, *, phases: int = 2, each: int = 2, most: int = 32, bonus: float = 0.1
    ) -> None:
        super().__init__(setup)
        size = setup.group_size
        require_option("xrpo", phases > 0, f"phases={phases} adds nothing", "Give 1 or more.")
        require_option("xrpo", each > 0, f"each={each} adds nothing", "Give 1 or more.")
        require_option(
            "xrpo",
            2 <= size < most,
            f"most={most} leaves nothing to add to a group_size of {size}, which must be 2 or more",
            "Give 2 ≤ rollout.group_size < most.",
        )
        require_option("xrpo", bonus >= 0, f"bonus {bonus:g} avoids what is not known", "Give 0 or more.")
        self.phases, self.each, self.most, self.bonus = phases, each, most, bonus

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset(range(self.setup.group_size, self.most + 1))

    def again(self, update: int, groups: Sequence[SeenGroup]) -> list[GroupRequest]:
        counts = [group.request.episodes for group in groups]
        phase, total = self.each * len(groups), sum(counts)
        given = total - self.setup.group_size * len(groups)
        sigmas = {i: deviation(group) for i, group in enumerate(groups) if group.episodes}
        for _ in range(min(phase, self.phases * phase - given)):
            room = [i for i in sigmas if counts[i] < self.most]
            if not room:
                break
            counts[max(room, key=lambda i: priority(sigmas[i], counts[i], self.bonus, total))] += 1
        return [replace(group.request, episodes=n) for group, n in zip(groups, counts, strict=True)]
