"""The agent's actions as a world of others is told them, and its tools as they are shown here."""

from __future__ import annotations

import functools
import json
from typing import cast

from turnwise.envs.acting import MOST_CALLS, read_action
from turnwise.envs.messages import Message
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, canonical
from turnwise.tools.core import Tool, ToolCall, ToolError, ToolSpec, find_tool


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

    The world checks its own arguments, so no schema is looked at here: that takes 3 ms a tool, and every task may have others.

    Raises:
        EnvError: a world describes one without a name or without a schema.
    """
    try:
        made = [
            ToolSpec(one["name"], one.get("description", ""), _schema(one["parameters"]))
            for one in json.loads(specs)
        ]
    except (TypeError, KeyError) as error:
        raise EnvError(
            f"A world offers a tool without {error}.", "Give name, description, parameters."
        ) from error
    return tuple(Tool(spec, _elsewhere, _elsewhere) for spec in made)


def _schema(given: Json) -> dict[str, Json]:
    if not isinstance(given, dict):
        raise TypeError("a schema of its parameters")
    return cast("dict[str, Json]", given)


def _elsewhere(*_: Json, **__: Json) -> dict[str, Json]:
    raise EnvError("The tools of a world of others run in it.", "Call them through step().")
