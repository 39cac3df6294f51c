"""An environment around another: its task holds the other's task, its state the other's moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from turnwise.envs.core import AgentEnv, EndReason, Info, Snapshot
from turnwise.envs.messages import Message, Messages
from turnwise.envs.registry import env_class, get_suite, make
from turnwise.envs.returned import check_task
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Suite, Task
from turnwise.tools.core import ToolError

KEY = "around"
"""The option of a task that holds the task of the world within."""
Moment: TypeAlias = Snapshot[Any]


class Entered(NamedTuple):
    """The beginning of a task within: its first moment, what is seen there, and the rules of the world."""

    moment: Moment
    seen: Messages
    rules: str


class PlayedWithin(NamedTuple):
    """Result of an action within: the moment after it, what is seen there, and the rest of the step."""

    moment: Moment
    seen: Messages
    info: Info

    @property
    def paid(self) -> Mapping[str, float]:
        """The components of the reward."""
        return self.info.get("rewards", {})

    @property
    def end(self) -> EndReason | None:
        """Why it ended; None where it goes on."""
        return self.info.get("end")

    @property
    def details(self) -> Mapping[str, Json]:
        """What the world tells of the step."""
        return self.info.get("details", {})

    def or_refuse(self) -> PlayedWithin:
        """The same.

        Raises:
            ToolError: the world within called the act bad.
        """
        if self.info.get("bad_action"):
            raise ToolError(words_of(self.seen))
        return self


class HasMoment(Protocol):
    """A state that holds the moment of the world within, and its rules."""

    @property
    def moment(self) -> Moment: ...
    @property
    def rules(self) -> str: ...


State = TypeVar("State", bound=HasMoment)


def suite_around(form: str, env: str, path: str, about: str) -> Suite:
    """The suite ``form:path`` of tasks around those of suite ``path``.

    Raises:
        EnvError: its world cannot be played within another.
    """
    inner = get_suite(path)
    cls = env_class(inner.env)
    agents: Any = cls.agents
    if cls.blocking or cls.fork_cost.dear or agents != ("agent",) or inner.planted:
        raise EnvError(
            f"{path} cannot be played within another world.",
            "Name a suite of ordinary tasks whose environment is pure (blocking = False) and has one agent.",
        )
    return replace(inner, name=f"{form}:{path}", env=env, about=about, knobs={"suite": path})


class AroundEnv(AgentEnv[State], Generic[State]):
    """Holds the world within; subclasses say who acts when, and what is told to whom."""

    blocking: ClassVar[bool] = False
    default_suite: ClassVar[str] = "shop/quick"
    _within: AgentEnv[Any] | None = None

    @classmethod
    def generate(cls, rng: Random, split: Split, *, suite: str = "", **knobs: Json) -> Task:
        inner = get_suite(suite or cls.default_suite)
        world = env_class(inner.env)
        made = check_task(world, world.generate(rng, split, **inner.knobs, **knobs))
        limit = int(made.options.get("turn_limit", world.turn_limit))
        options = {KEY: made.to_json(), "turn_limit": 2 * limit + 1}
        return Task(cls.registered, made.prompt, options, made.gold)

    registered: ClassVar[str] = ""
    """The id under which the class is registered."""

    def enter(self, task: Task, seed: int) -> Entered:
        """Begin the task within."""
        inner = Task.from_json(task.options[KEY])
        world = self._world_of(inner)
        seen, _ = world.reset(seed=seed, options={"task": inner})
        rules = "\n\n".join(message.content for message in seen if message.role == "system")
        return Entered(world.snapshot(), without_rules(seen), rules)

    def played(self, moment: Moment, action: Message) -> PlayedWithin:
        """Carry out an action within; what comes of it."""
        world = self.world(moment._replace(seed=self.now.seed))
        step = world.step(action)
        return PlayedWithin(world.snapshot(), without_rules(step.observation), step.info)

    def world(self, moment: Moment) -> AgentEnv[Any]:
        """The world within, at this moment."""
        world = self._world_of(moment.task)
        world.restore(moment)
        return world

    @property
    def here(self) -> AgentEnv[Any] | None:
        """The world within as it is now; None before the first episode."""
        return None if self._snapshot is None else self.world(self.state.moment)

    @property
    def rules(self) -> str:
        """The rules of the world within; empty before the first episode."""
        return "" if self._snapshot is None else self.state.rules

    def _world_of(self, inner: Task) -> AgentEnv[Any]:
        if self._within is None or not isinstance(self._within, env_class(inner.env)):
            self._within = make(inner.env)
            self.reward_components = {**type(self).reward_components, **self._within.reward_components}
        return self._within

    def key(self, moment: Moment) -> str:
        """The hash of the state within."""
        return self.world(moment).state_key(moment.state)


def without_rules(messages: Messages) -> Messages:
    """Messages without those of the system."""
    return Messages(message for message in messages if message.role != "system")


def words_of(messages: Messages) -> str:
    """The words of messages, one after the other."""
    return "\n".join(message.content for message in messages if message.content)


def act_of(action: Message) -> str:
    """An act in words that can be told: what was said, and the calls.

    >>> act_of(Message("assistant", "so \\ud800"))
    'so ?'
    """
    called = " ".join(f"{call.name} {dict(call.arguments)}" for call in action.tool_calls)
    return f"{action.content} {called}".strip().encode("utf-8", "replace").decode()
