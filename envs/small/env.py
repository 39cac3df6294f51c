"""Base of the small worlds: an environment that takes one call per turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Generic, NamedTuple, TypeVar

from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.small.actions import read_action
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolCall, find_tool

State = TypeVar("State")


class CallResult(NamedTuple, Generic[State]):
    """Outcome of a call."""

    state: State
    text: str
    end: EndReason | None = None
    rewards: Mapping[str, float] = {}


class CallEnv(AgentEnv[State]):
    """An environment acted in by one call per turn; the outcome is 1 when it is solved.

    Calls may also be written ``verb argument , argument .`` or ``verb[argument]`` in the last line of a text.
    """

    blocking: ClassVar[bool] = False
    calls_per_turn: ClassVar[int | None] = 1
    max_trivial_score: ClassVar[float] = 0.2

    def do(self, state: State, name: str, arguments: Mapping[str, Json]) -> CallResult[State]:
        """Carry out a call; its arguments are checked.

        Raises:
            ToolError: it means nothing here.
        """
        raise NotImplementedError

    def transition(self, state: State, action: Message) -> Transition[State]:
        call = read_action(action, self.tools)
        arguments = find_tool(self.tools, call.name).validate(_with_texts(call))
        after, text, end, rewards = self.do(state, call.name, arguments)
        outcome = {"outcome": float(end is EndReason.SOLVED)} if end else {}
        return Transition(after, text, {**outcome, **rewards}, end)


def _with_texts(call: ToolCall) -> ToolCall:
    """A call whose numbers are texts, as every tool here reads them: an agent may answer 12 or "12".

    >>> _with_texts(ToolCall("answer", {"value": 12})).arguments
    {'value': '12'}
    """
    return replace(
        call,
        arguments={
            name: str(value) if type(value) in (int, float) else value
            for name, value in call.arguments.items()
        },
    )
