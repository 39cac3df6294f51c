"""Tasks that are neither too hard nor too easy for the policy come back."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import (
    NEVER,
    GroupRequest,
    Sampler,
    SamplerSetup,
    SeenGroup,
    after_visit,
    memory_from,
    memory_state,
)

FADES = 0.5
"""The weight of earlier visits beside the newest one, at every visit, since the policy has changed since."""


@component("sampler", "band", paper="2504.03380")
class Band(Sampler):
    """Tasks whose measured success is within [low, high] come back; others are replaced by new ones.

    After online difficulty filtering (Bae et al. 2025), where the policy's success on a task says how much it can
    teach: the variance of a success is p(1−p). Measured success is that of the task's visits, each one weighing half as
    much as the next. The tasks of an update are those in the band and new ones, in an order that is drawn.

    The update is that of training on the tasks in the band: another objective than that of the suite. This is the paper's idea and
    not its method, which filters the groups just played by their own success and has no memory: that is the filter `band`.

    ``first`` above 0 plays new tasks that often, to see whether they are in the band; those that come back are played
    ``group_size`` times. Each task weighs the same.

    >>> from turnwise.trainers.sampler.core import example_setup
    >>> sampler = Band(example_setup(most=4))
    >>> sampler.restore(PartState({"7": [1, 4.0, 2.0, 0]}))  # solved twice in four episodes, in update 0
    >>> sorted(request.index for request in sampler.plan(1, 0, 4))  # and three new ones
    [4, 5, 6, 7]
    """

    returns = True
    by_success = True
    over = "the tasks that the policy solves as often as the band says, and new ones"

    def __init__(self, setup: SamplerSetup, *, low: float = 0.2, high: float = 0.8, first: int = 0) -> None:
        super().__init__(setup)
        if not 0 <= low <= high <= 1:
            raise RecipeError(
                f"sampler 'band': [{low:g}, {high:g}] is no band of success.", "Give 0 ≤ low ≤ high ≤ 1."
            )
        if first < 0:
            raise RecipeError(
                f"sampler 'band': first={first} is no number of episodes.", "Give 0 for group_size, or more."
            )
        self.low, self.high, self.first = low, high, first
        self._memory = memory_from(PartState())

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset({self.setup.group_size, self.first or self.setup.group_size})

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        most = self.setup.most
        first = self.setup.first_new(update)
        new = (i for i in range(first, first + most) if i not in self._memory)
        indices = [*self._memory, *(next(new) for _ in range(most - len(self._memory)))]
        derive_rng("band", self.setup.seed, update).shuffle(indices)
        return [self._request(index) for index in indices[played : played + groups]]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            index = group.request.index
            known = after_visit(self._memory.pop(index, NEVER), update, group, keep=FADES)
            if group.episodes and self.low <= known.rate <= self.high:
                self._memory[index] = known
        newest = sorted(self._memory.items(), key=lambda item: (-item[1].last, item[0]))
        self._memory = dict(sorted(newest[: self.setup.most]))

    def state(self) -> PartState:
        return memory_state(self._memory)

    def restore(self, state: PartState) -> None:
        self._memory = dict(sorted(memory_from(state).items()))

    def _request(self, index: int) -> GroupRequest:
        known = self._memory.get(index)
        if known is None:
            return self.setup.request(index, episodes=self.first)
        return self.setup.request(index, visits=known.visits)
