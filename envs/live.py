"""Live environments, whose state lies outside of Python: a container with files, a browser with a page.

The contract is that of :class:`turnwise.envs.core.AgentEnv`; the difference is that ``transition`` changes the
live world and returns a description of it, and that returning to a moment needs a copy of that world.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import ClassVar

from turnwise.envs.core import AgentEnv, ForkCost, Snapshot
from turnwise.envs.steps import State


class LiveEnv(AgentEnv[State]):
    """An environment with a live world, which it owns from ``initial`` until ``close``.

    ``state`` must hold all that deciding and judging need: a hash of the files, the page's address. What the
    live world runs on may fail; raise :class:`turnwise.errors.InfraError` then, and the episode is played
    again in a fresh environment.
    """

    fork_cost = ForkCost.COPY
    twin: ClassVar[str] = ""
    """An environment that plays the same tasks without a live world; the benchmark compares both."""

    @abstractmethod
    def capture(self) -> object:
        """A copy of the live world that later steps do not change; freed when nobody refers to it."""

    @abstractmethod
    def revive(self, captured: object) -> None:
        """Make the live world what it was when ``captured`` was taken, whichever environment took it."""

    @abstractmethod
    def detach(self) -> None:
        """Forget the live world without touching it: this object is a copy of its owner."""

    def snapshot(self) -> Snapshot[State]:
        """This moment of the episode, with a copy of the live world."""
        return self.now._replace(world=self.capture())

    def restore(self, snapshot: Snapshot[State]) -> None:
        """Return to a moment of any episode of this class of environment."""
        self.revive(snapshot.world)
        super().restore(snapshot._replace(world=None))

    def fork(self, *, seed: int | None = None) -> AgentEnv[State]:
        """A second environment at this moment, with a live world of its own."""
        moment = self.snapshot()
        twin = copy.copy(self)
        twin._np_random = None
        twin.detach()
        twin.restore(moment if seed is None else moment._replace(seed=seed))
        return twin
