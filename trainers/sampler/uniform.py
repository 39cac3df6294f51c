"""Every update has new tasks."""

from __future__ import annotations

from turnwise.registry import component
from turnwise.trainers.sampler.core import GroupRequest, Sampler


@component("sampler", "uniform")
class Uniform(Sampler):
    """New tasks in every update of every phase, one after the other; with several suites each one's is drawn by weight.

    >>> from turnwise.trainers.sampler.core import example_setup
    >>> sampler = Uniform(example_setup())
    >>> [request.index for request in sampler.plan(0, 0, 3)], [request.index for request in sampler.plan(1, 4, 2)]
    ([0, 1, 2], [12, 13])
    """

    unbiased = True
    over = "the suites' training tasks, each suite by its share"

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        first = self.setup.first_new(update) + played
        return [self.setup.request(index) for index in range(first, first + groups)]
