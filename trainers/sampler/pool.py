"""A finite pool of tasks that return."""

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


@component("sampler", "pool")
class TaskPool(Sampler):
    """The first ``size`` training tasks, over and over: each update draws its tasks from them without replacement.

    A task is in one group of an update at most, and every task of the pool is as likely as any other, so that the
    expected update is that of training on the pool. Rules that remember a task's earlier visits (`dcpo`) work on a pool.

    With ``hard`` above 0 a task that was solved in less than half of its episodes so far is played ``hard`` times; after
    the idea of DARS (difficulty-adaptive rollout sampling), without its schedule. Its weight in the update stays that of
    one task, so that only the noise changes, not the expected update (of rules for which group size is no matter).

    >>> from turnwise.trainers.sampler.core import example_setup
    >>> sampler = TaskPool(example_setup(), size=10)
    >>> indices = [request.index for request in sampler.plan(0, 0, 8)]
    >>> len(set(indices)), max(indices) < 10, indices == [request.index for request in sampler.plan(0, 0, 8)]
    (8, True, True)
    """

    returns = True
    unbiased = True
    over = "the tasks of its pool, each as likely as any other"

    def __init__(self, setup: SamplerSetup, *, size: int = 256, hard: int = 0) -> None:
        super().__init__(setup)
        if size < setup.most:
            raise RecipeError(
                f"sampler 'pool' has {size} tasks, and an update may play {setup.most}.",
                "Raise its size, or lower rollout.groups or rollout.refill.most.",
            )
        if hard and hard < setup.group_size:
            raise RecipeError(
                f"sampler 'pool': hard={hard} is less than the group_size of {setup.group_size}.",
                "Give a number of episodes above rollout.group_size, or 0 for none.",
            )
        self.size, self.hard = size, hard
        self._memory = memory_from(PartState())

    @property
    def sizes(self) -> frozenset[int]:
        return frozenset({self.setup.group_size, self.hard or self.setup.group_size})

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        drawn = derive_rng("pool", self.setup.seed, update).sample(range(self.size), self.setup.most)
        return [self._request(index) for index in drawn[played : played + groups]]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            index = group.request.index
            self._memory[index] = after_visit(self._memory.get(index, NEVER), update, group)

    def state(self) -> PartState:
        return memory_state(self._memory)

    def restore(self, state: PartState) -> None:
        self._memory = memory_from(state)

    def _request(self, index: int) -> GroupRequest:
        known = self._memory.get(index, NEVER)
        more = self.hard if known.episodes and known.rate < 0.5 else 0
        return self.setup.request(index, episodes=more, visits=known.visits)
