"""Worlds outside of this process that only go forward, and that are brought back by doing everything once more.

MCP servers (envs/mcp) and the packages of others (envs/foreign) are such worlds.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

from turnwise.envs.core import AgentEnv, ForkCost
from turnwise.envs.steps import State
from turnwise.errors import InfraError
from turnwise.tasks.core import Json, Task, digest

Act = TypeVar("Act")
Answer = TypeVar("Answer")
Replayed = TypeVar("Replayed", bound="ReplayedWorld[Any, Any]")


class ReplayPlace(NamedTuple, Generic[Act]):
    """Where a world is: its task, all that was done there, and a digest of all that was heard."""

    task: str
    acts: tuple[Act, ...]
    heard: str


class ReplayedWorld(ABC, Generic[Act, Answer]):
    """A world that can do what cannot be undone, so there is one way back: begin anew and do the same.

    It must therefore answer the same to the same; whoever comes back says what was heard the first time.
    """

    _at: ReplayPlace[Act] | None = None

    @property
    def place(self) -> ReplayPlace[Act]:
        """The place where the world is."""
        assert self._at is not None, "go_to first"
        return self._at

    def go_to(self, task: Task, acts: Sequence[Act] = (), heard: str = "") -> None:
        """Bring the world to where these acts lead; from where it is, if they begin with what was done.

        Raises:
            InfraError: the world does not answer, or another thing than ``heard`` says.
        """
        at, wanted = self._at, tuple(acts)
        if at is None or at.task != task.id or wanted[: len(at.acts)] != at.acts:
            self._at = None
            self._at = ReplayPlace(task.id, (), digest(self._begin(task)))
        for act in wanted[len(self.place.acts) :]:
            self.act(act)
        if heard not in ("", self.place.heard):
            self._at = None
            raise InfraError(
                f"The world of {task.env} answered something else when the same {len(wanted)} turns were played again.",
                "It keeps no determinism: look for a clock, an order of a set, or a random generator without a seed.",
            )

    def act(self, act: Act) -> Answer:
        """Do something, and return the answer.

        Raises:
            InfraError: the world does not answer; nobody knows then where it is.
        """
        at, self._at = self.place, None
        answer = self._do(act)
        self._at = ReplayPlace(at.task, (*at.acts, act), digest(at.heard, self._heard(answer)))
        return answer

    @abstractmethod
    def close(self) -> None:
        """End the world."""

    @abstractmethod
    def _begin(self, task: Task) -> Json:
        """Begin a task anew, and return what is heard first."""

    @abstractmethod
    def _do(self, act: Act) -> Answer: ...

    @abstractmethod
    def _heard(self, answer: Answer) -> Json:
        """Return the part of an answer that must be the same whenever the same is done."""


class WorldPool(Generic[Replayed]):
    """Worlds that run and that no environment uses just now: starting one takes a second, or ten.

    They outlive environments; at most ``most`` of a kind wait.
    """

    def __init__(self, most: int = 16) -> None:
        self._idle: dict[Hashable, list[Replayed]] = {}
        self._lock = threading.Lock()
        self._most = most
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    def take(self, kind: Hashable, make: Callable[[], Replayed]) -> Replayed:
        """Return a world of this kind that waits, or a new one."""
        with self._lock:
            idle = self._idle.get(kind)
            found = idle.pop() if idle else None
        return found or make()

    def give(self, kind: Hashable, world: Replayed) -> None:
        """Leave a world to whoever asks next."""
        with self._lock:
            idle = self._idle.setdefault(kind, [])
            if len(idle) < self._most:
                idle.append(world)
                return
        world.close()

    def close(self) -> None:
        """End all that wait."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for worlds in idle.values():
            for world in worlds:
                world.close()

    def _forget(self) -> None:
        """A forked child has the pipes of its parent's worlds, and must not speak to them."""
        self._idle, self._lock = {}, threading.Lock()


class ReplayedEnv(AgentEnv[State], Generic[State, Replayed]):
    """An environment that borrows its world from a pool. Its states are what was done, so a fork borrows another one."""

    pool: ClassVar[WorldPool[Any]]
    fork_cost = ForkCost.REPLAY
    _live: Replayed | None = None

    @classmethod
    @abstractmethod
    def world_kind(cls) -> Hashable:
        """Return the key under which the pool keeps such worlds."""

    @classmethod
    @abstractmethod
    def start_world(cls) -> Replayed:
        """Start one more."""

    def borrowed(self) -> Replayed:
        """The world of this environment: borrowed at the first call, given back by :meth:`close`."""
        if (live := self._live) is None:
            kind = self.world_kind()
            self._live = live = self.pool.take(kind, self.start_world)
            self._give_back = weakref.finalize(self, self.pool.give, kind, live)
        return live

    def fork(self, *, seed: int | None = None) -> Self:
        twin = super().fork(seed=seed)
        assert isinstance(twin, type(self))
        twin._live = None
        return twin

    def close(self) -> None:
        """Leave the world to the next environment of its kind."""
        if self._live is not None:
            self._give_back()
            self._live = None
