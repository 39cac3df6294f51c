"""The base class of environments that are acted in with commands in plain words, and what keeps their worlds."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

from turnwise.envs.acting import one_act_rules
from turnwise.envs.core import AgentEnv, EndReason, RewardKind, Step, Transition
from turnwise.envs.messages import Image, Message, Messages
from turnwise.envs.worlds.one_command import LONGEST, NONE_FOUND, TOOLS, Forms, Tried, is_plain, spoken
from turnwise.tasks.core import Json, Task
from turnwise.tools.core import ToolError

State = TypeVar("State")
_MOST_HINTS = 200  # commands that a hint lists


class CommandAnswer(NamedTuple, Generic[State]):
    """Outcome of a command: the next state, what is said of it, and whether it is over."""

    state: State
    text: str
    end: EndReason | None = None


class CommandEnv(AgentEnv[State]):
    """An environment whose actions are commands in plain words, and whose outcome is 1 when it is solved.

    Subclasses define :meth:`begin`, :meth:`opening`, :meth:`obey`, and the rest of ``AgentEnv``. The task
    option ``commands`` says who is told what can be done: nobody (``hidden``), ``info["details"]`` (``info``)
    or the policy (``shown``). The constructor's ``grounding`` is paid for a command that can be carried out
    (SPA-RL, arXiv 2505.20732) and leads to a state of the episode that is new: a reward for steps as such, so it
    changes what is optimal, but looking about again earns nothing.
    """

    tools = TOOLS
    blocking: ClassVar[bool] = False
    calls_per_turn: ClassVar[int | None] = 1
    forms: ClassVar[Forms | None] = None
    """Form of commands; a world without it is asked what it has an answer to."""

    def __init__(
        self, *, shaping: float = 0.0, grounding: float = 0.0, render_mode: str | None = None
    ) -> None:
        super().__init__(shaping=shaping, render_mode=render_mode)
        self.grounding = grounding
        if grounding:
            self.reward_components = {**self.reward_components, "grounding": RewardKind.STEP}

    def begin(self, task: Task) -> State:
        """The first state."""
        raise NotImplementedError

    def opening(self, state: State) -> tuple[str, str]:
        """The system message and the first observation."""
        raise NotImplementedError

    def rules(self, task: Task) -> str:
        """The rules of every message, told after the system message where texts are sentences."""
        if task.options.get("text") != "full":
            return ""
        return one_act_rules(
            "command", task.options.get("turn_limit", self.turn_limit), ", as text or with the tool act"
        )

    def obey(self, state: State, words: Sequence[str]) -> CommandAnswer[State]:
        """Carry out a command.

        Raises:
            ToolError: it means nothing here.
        """
        raise NotImplementedError

    def heard(self, state: State, action: Message) -> tuple[str, ...]:
        """The words of a message's one command.

        Raises:
            ToolError: there is none, or more than one.
        """
        if self.forms is not None:
            return spoken(action, grammar=self.forms)
        if not action.tool_calls and len(action.content) < LONGEST and is_plain(action.content):
            return spoken(action)
        return spoken(action, grammar=Tried(state, functools.cache(functools.partial(self._tried, state))))

    def _tried(self, state: State, words: tuple[str, ...]) -> tuple[object, str]:
        if not words:
            return None, NONE_FOUND
        try:
            answer = self.obey(state, words)
        except ToolError as error:
            return None, str(error)
        return (answer.state, answer.end), answer.text

    def images(self, state: State) -> tuple[Image, ...]:
        """Pictures that go with an observation; none unless a subclass draws some."""
        return ()

    def initial(self, task: Task) -> tuple[State, Messages]:
        state = self.begin(task)
        system, text = self.opening(state)
        system += self.rules(task)
        if task.options.get("commands") == "shown":
            text = f"{text}\n{self._hint(state)}"
        return state, Messages((Message("system", system), Message("user", text, images=self.images(state))))

    def transition(self, state: State, action: Message) -> Transition[State]:
        after, text, end = self.obey(state, self.heard(state, action))
        shown = self.task.options.get("commands", "hidden")
        details: dict[str, Json] = {}
        if shown != "hidden" and end is None:
            if shown == "shown":
                text = f"{text}\n{self._hint(after)}"
            details = {"commands": list(self.admissible(after))}
        rewards = {"outcome": float(end is EndReason.SOLVED)} if end else {}
        rewards |= self._grounded(state, after)
        seen = self.images(after)
        if not seen:
            return Transition(after, text, rewards, end, details)
        role, call = ("tool", action.tool_calls[0].id) if action.tool_calls else ("user", "")
        told = Messages((Message(role, text, tool_call_id=call, images=seen),))
        return Transition(after, told, rewards, end, details)

    def looked_at(self, state: State) -> str:
        """Return the key by which ``grounding`` takes states for one and the same."""
        return self.state_key(state)

    def step(self, action: Message | str) -> Step:
        if not self.grounding:
            return super().step(action)
        before = self.now
        key = self.looked_at(before.state)
        step = super().step(action)
        self._snapshot = self.now._replace(seen=before.seen | {key})
        return step

    def _grounded(self, state: State, after: State) -> dict[str, float]:
        """Return the reward of ``grounding`` for coming from one state to another."""
        if not self.grounding:
            return {}
        key = self.looked_at(after)
        new = key != self.looked_at(state) and key not in self.now.seen
        return {"grounding": self.grounding * new}

    def _hint(self, state: State) -> str:
        return "commands : " + " , ".join(list(self.admissible(state))[:_MOST_HINTS]) + " ."


World = TypeVar("World")


class WorldCache(Generic[World]):
    """Worlds of tasks: built once, then shared by a group's episodes; the oldest are forgotten."""

    def __init__(self, build: Callable[[Task], World], most: int = 2048) -> None:
        self._build, self._most = build, most
        self._kept: dict[str, World] = {}
        self._lock = threading.Lock()

    def __call__(self, task: Task) -> World:
        found = self._kept.get(task.id)
        if found is None:
            found = self._build(task)
            with self._lock:
                self._kept[task.id] = found
                if len(self._kept) > self._most:
                    del self._kept[next(iter(self._kept))]
        return found
