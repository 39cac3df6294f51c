"""Environments out of packages of others that live in an interpreter of their own.

A subclass names the interpreter and the file that runs in it, and makes tasks; docs/how-to/foreign-worlds.md has an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import ClassVar

from turnwise.envs.core import Transition
from turnwise.envs.foreign.actions import act_of, message_of, tools_of
from turnwise.envs.foreign.live import LiveWorld, WorldProgram
from turnwise.envs.foreign.named import python_of
from turnwise.envs.foreign.state import ForeignState
from turnwise.envs.messages import Message, Messages
from turnwise.envs.replaying import ReplayedEnv, WorldPool
from turnwise.tasks.core import Json, Split, Task, digest
from turnwise.tools.core import Tool, ToolError

_PLANS = 1000  # of tasks that are kept


class ForeignEnv(ReplayedEnv[ForeignState, LiveWorld]):
    """An environment whose world is a package of others, in a process with an interpreter of its own.

    A state is what was done so far, so forks cost nothing until they are stepped; then a world is brought there by doing it
    all again, and what it answers must be what it answered before.
    """

    world: ClassVar[str]  # the named environment that its package lives in (`turnwise worlds add`)
    side: ClassVar[Path]  # the file that runs there
    start: ClassVar[float] = 120.0  # seconds that its imports may take
    deadline: ClassVar[float] = 60.0  # seconds of each request
    observation_limit = 200_000  # published scores are of models that saw all: bfcl:multi_turn_long_context has 32,000 characters
    pool: ClassVar[WorldPool[LiveWorld]] = WorldPool()

    # --- what an author may write ----------------------------------------------------------------

    @classmethod
    def program(cls) -> WorldProgram:
        """The program that keeps the world.

        Raises:
            MissingDependencyError: its named environment has not been made.
        """
        return WorldProgram(python_of(cls.world), str(cls.side), cls.start, cls.deadline)

    # --- the contract ----------------------------------------------------------------------------

    @property
    def tools(self) -> tuple[Tool, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The tools that the world offers now to whoever acts."""
        return self.tools_for(self._snapshot.state.agent) if self._snapshot else ()

    def tools_for(self, agent: str) -> tuple[Tool, ...]:
        return tools_of(self._snapshot.state.seat(agent).tools, self.task.env) if self._snapshot else ()

    def system_for(self, agent: str) -> str:
        return (self._snapshot.state.seat(agent).system if self._snapshot else "") or self.system

    def current_agent(self, state: ForeignState) -> str:
        return state.agent

    def initial(self, task: Task) -> tuple[ForeignState, str]:
        live = self.borrowed()
        live.go_to(task)
        opening = live.opening
        first = ForeignState(task.id, agent=self.agents[0])
        state = first.after(live.place.acts, live.place.heard, opening)
        tools_of(state.seat(state.agent).tools, task.env)  # what is wrong with them is said here
        return state, opening.text

    def transition(self, state: ForeignState, action: Message) -> Transition[ForeignState]:
        act = act_of(action, tools_of(state.seat(state.agent).tools, self.task.env))
        live = self.borrowed()
        live.go_to(self.task, state.acts, state.heard)
        said = live.act(act)
        if said.refused:
            raise ToolError(said.refused)
        after, first = state.after(live.place.acts, live.place.heard, said), self.agents[0]
        tools_of(after.seat(after.agent).tools, self.task.env)
        shown = said.shown(action.tool_calls)
        if isinstance(shown, Messages):
            shown = Messages(replace(one, content=self.within_limit(one.content)) for one in shown)
        if state.agent == first or not said.rewards:
            return Transition(after, shown, said.rewards, said.end, said.details)
        return Transition(after, shown, {}, said.end, said.details, rewards_to={first: said.rewards})

    def gold(self, state: ForeignState) -> Message | str:
        """The next action of the world's own plan, as far as exactly the plan was followed so far."""
        plan = self._plan(self.task)
        if not plan:
            return super().gold(state)
        number = min(len(state.acts), len(plan) - 1)
        return message_of(plan[number], number)

    def admissible(self, state: ForeignState) -> Sequence[str]:
        return state.admissible

    def state_key(self, state: ForeignState) -> str:
        return digest(state.task, state.acts, state.heard)  # the rest follows from these

    # --- for subclasses --------------------------------------------------------------------------

    @classmethod
    def ask_world(cls, **asked: Json) -> Json:
        """Return what the world says of its own tasks, such as how many there are in a split."""
        kind = cls.world_kind()
        live = cls.pool.take(kind, cls.start_world)
        try:
            return live.list(asked)
        finally:
            cls.pool.give(kind, live)

    @staticmethod
    def seed_of(rng: Random, split: Split, most: int = 2**28) -> int:
        """Draw a seed for a world whose tasks are seeds: each split has ``most`` of its own."""
        return len(Split) * rng.randrange(most) + list(Split).index(split)

    # --- inside ----------------------------------------------------------------------------------

    def _plan(self, task: Task) -> Sequence[Json]:
        plans = type(self)._plans()
        if task.id not in plans:
            live = self.borrowed()
            live.go_to(task)
            if len(plans) >= _PLANS:
                plans.clear()
            plans[task.id] = live.gold() or ()
        return plans[task.id]

    @classmethod
    def _plans(cls) -> dict[str, Sequence[Json]]:
        if "_known" not in vars(cls):
            cls._known: dict[str, Sequence[Json]] = {}
        return cls._known

    @classmethod
    def world_kind(cls) -> WorldProgram:
        return cls.program()

    @classmethod
    def start_world(cls) -> LiveWorld:
        return LiveWorld(cls.program())
