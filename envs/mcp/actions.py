"""The calls of a message; ``finish``, which ends the episode."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs import acting
from turnwise.envs.messages import Message
from turnwise.tools.core import Tool, ToolCall, tool


def finish(answer: str = "") -> None:
    """Say that the task is done, with an answer where one was asked for. Ends the episode."""


FINISH = tool(finish)


def calls_of(action: Message, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """The calls of a message, its own or those in its text.

    Raises:
        ToolError: there is none, or there are too many.
    """
    return acting.calls_of(action, tools, acting.MOST_CALLS)
