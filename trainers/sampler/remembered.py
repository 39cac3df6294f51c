"""Bases of samplers: tasks of a pool that are remembered, and suites that are drawn by weights of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

from turnwise.errors import RecipeError
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import PartState
from turnwise.trainers.sampler.core import (
    NEVER,
    GroupRequest,
    Sampler,
    SamplerSetup,
    SeenGroup,
    TaskMemory,
    after_visit,
    memory_from,
    memory_state,
)


class FromPool(Sampler):
    """Chooses among the first ``size`` training tasks, of each of which it remembers how often it was solved.

    Subclasses say by :meth:`chosen` which tasks an update has, all at once; what they give must say nothing by its order.
    """

    returns = True
    by_success = True
    keep = 1.0

    def __init__(self, setup: SamplerSetup, size: int) -> None:
        super().__init__(setup)
        if size < setup.most:
            raise RecipeError(
                f"The sampler's pool has {size} tasks, and an update may play {setup.most}.",
                "Raise its size, or lower rollout.groups or rollout.refill.most.",
            )
        self.size = size
        self.memory: dict[int, TaskMemory] = {}

    def chosen(self, update: int) -> list[GroupRequest]:
        """Return all that an update may play."""
        raise NotImplementedError

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        return self.chosen(update)[played : played + groups]

    def known(self, index: int) -> TaskMemory:
        """Return what is remembered of a task."""
        return self.memory.get(index, NEVER)

    def request(self, index: int, episodes: int = 0) -> GroupRequest:
        return self.setup.request(index, episodes=episodes, visits=self.known(index).visits)

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        for group in groups:
            index = group.request.index
            self.memory[index] = after_visit(self.known(index), update, group, keep=self.keep)

    def state(self) -> PartState:
        return memory_state(self.memory)

    def restore(self, state: PartState) -> None:
        self.memory = memory_from(state)


class OverSuites(Sampler):
    """Draws the suite of each task by weights of its own, and the next new task of that suite."""

    by_success = True

    def weights(self) -> Sequence[float]:
        """Return how likely each suite is, in the order of the mixture."""
        raise NotImplementedError

    def drawn(self, update: int) -> list[str]:
        """Return the suite of each task that an update may play."""
        rng = derive_rng("suites", self.setup.seed, update)
        return rng.choices(self.setup.suites, self.weights(), k=self.setup.most)

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        first = self.setup.first_new(update)
        drawn = [*enumerate(self.drawn(update), start=first)]
        return [self.setup.request(i, suite=suite) for i, suite in drawn[played : played + groups]]

    def figures(self) -> Mapping[str, float]:
        return {
            f"weight/{suite}": weight for suite, weight in zip(self.setup.suites, self.weights(), strict=True)
        }


def softmax(scores: Sequence[float], temperature: float) -> list[float]:
    """exp(s/τ), normed to 1.

    >>> [round(p, 4) for p in softmax([1.0, 2.0], 0.5)]
    [0.1192, 0.8808]
    """
    top = max(scores)
    raised = [exp((score - top) / temperature) for score in scores]
    return [one / sum(raised) for one in raised]


def require_option(name: str, fits: bool, said: str, remedy: str) -> None:
    """Refuse an option of sampler ``name`` that does not fit.

    Raises:
        RecipeError: it does not.
    """
    if not fits:
        raise RecipeError(f"sampler {name!r}: {said}.", remedy)
