"""The agent's actions as a world of others is told them, and its tools as they are shown here."""

from __future__ import annotations

import functools
import json

from turnwise.envs.acting import MOST_CALLS, read_action
from turnwise.envs.messages import Message
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, canonical
from turnwise.tools.core import Tool, ToolCall, ToolError, ToolSpec, find_tool
from turnwise.tools.schema import tool_of_schema


def act_of(action: Message, tools: tuple[Tool, ...]) -> str:
    """Return an action as JSON: ``{"text": …}``, with ``"calls"`` where there are tools.

    Raises:
        ToolError: a call cannot be read, or there is no such tool.
    """
    text = action.content.encode("utf-8", "replace").decode()
    if not tools:
        return canonical({"text": text})
    calls = read_action(action, tools, MOST_CALLS).calls
    for call in calls:
        find_tool(tools, call.name)
    told = [{"name": call.name, "arguments": dict(call.arguments)} for call in calls]
    try:
        return canonical({"text": text, "calls": told})
    except (TypeError, ValueError, RecursionError):
        raise ToolError("The arguments of a call are no JSON.") from None


def message_of(act: Json, number: int) -> Message:
    """Return an action of a world's plan, a text or calls, as a message."""
    if isinstance(act, str):
        return Message("assistant", act)
    calls = tuple(
        ToolCall(call["name"], call["arguments"], f"call_{number}_{n}")
        for n, call in enumerate(act.get("calls", ()))
    )
    return Message("assistant", act.get("text", ""), calls)


@functools.lru_cache(maxsize=64)
def tools_of(specs: str) -> tuple[Tool, ...]:
    """Return tools that are shown here and run in the world.

    Raises:
        EnvError: a world describes one without a name.
    """

    def elsewhere(**_: Json) -> str:
        raise EnvError("The tools of a world of others run in it.", "Call them through step().")

    try:
        made = [
            ToolSpec(one["name"], one.get("description", ""), one["parameters"]) for one in json.loads(specs)
        ]
    except (TypeError, KeyError) as error:
        raise EnvError(
            f"A world offers a tool without {error}.", "Give name, description, parameters."
        ) from error
    return tuple(tool_of_schema(spec, elsewhere) for spec in made)
