"""The calls of a message; ``finish``, which ends the episode."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.messages import Message
from turnwise.tools.core import Tool, ToolCall, ToolError, tool
from turnwise.tools.dialects.registry import read_calls

MOST_CALLS = 16  # in one message


def finish(answer: str = "") -> None:
    """Say that the task is done, with an answer where one was asked for. Ends the episode."""


FINISH = tool(finish)


def calls_of(action: Message, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """The calls of a message, its own or those in its text.

    Raises:
        ToolError: there is none, or there are too many.
    """
    calls = action.tool_calls or _read(action.content, tools)
    if len(calls) > MOST_CALLS:
        raise ToolError(f"At most {MOST_CALLS} calls in one message.")
    return calls


def _read(text: str, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    parsed = read_calls(text, [one.spec for one in tools])
    if not parsed.calls:
        names = ", ".join(one.spec.name for one in tools)
        raise ToolError(parsed.error or f"Call a tool; finish ends the task. Tools: {names}.")
    return parsed.calls
