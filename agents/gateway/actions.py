"""Actions of a session beside talking: the tools of an environment, each call of which is played there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from turnwise.envs.core import EndReason
from turnwise.envs.messages import Image, Message
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall, ToolError, ToolSpec, find_tool, tool


class ActResult(NamedTuple):
    """The environment's answer, whether it refused the action, how the episode ended if it did, and pictures."""

    text: str
    bad_action: bool = False
    end: EndReason | None = None
    images: tuple[Image, ...] = ()


class World(Protocol):
    """An environment's episode, as programs outside of it act in it."""

    @property
    def instructions(self) -> str:
        """The task, as it was told at the beginning."""
        ...

    @property
    def pictures(self) -> tuple[Image, ...]:
        """Those that were shown with it."""
        ...

    def specs(self) -> Sequence[ToolSpec]: ...

    async def act(self, action: Message) -> ActResult:
        """Play an action.

        Raises:
            ToolError: the episode is over.
        """
        ...


def task() -> str:
    """Tell what is to be done, as it was told at the beginning."""
    raise NotImplementedError


def say(text: str) -> str:
    """Say something in plain words, to the user or as the environment's own commands."""
    raise NotImplementedError


_TASK, _SAY = tool(task), tool(say)


def offered(own: Sequence[Tool], plain_words: bool) -> list[ToolSpec]:
    """An environment's tools; where it has none, or with ``plain_words``, also ``task`` and ``say``, unless it has such."""
    if own and not plain_words:
        return [one.spec for one in own]
    names = {one.spec.name for one in own}
    return [one.spec for one in (*own, *(extra for extra in (_TASK, _SAY) if extra.spec.name not in names))]


def action_of(own: Sequence[Tool], call: ToolCall) -> Message | None:
    """The action that a call is; None: it asks what the task is, which is no action.

    Raises:
        ToolError: there is no such tool, or what is said is no text.
    """
    if any(one.spec.name == call.name for one in own):
        return Message("assistant", "", (call,))
    chosen = find_tool((*own, _TASK, _SAY), call.name)
    arguments = chosen.validate(call)
    return None if chosen is _TASK else Message("assistant", arguments["text"])


async def carry_out(
    world: World, own: Sequence[Tool], name: str, arguments: Mapping[str, Json], call_id: str
) -> ActResult:
    """Play a call of one of the offered tools; what the environment refuses is a bad action, too."""
    try:
        action = action_of(own, ToolCall(name, arguments, call_id))
        if action is None:
            return ActResult(world.instructions, images=world.pictures)
        return await world.act(action)
    except ToolError as error:
        return ActResult(str(error), bad_action=True)
