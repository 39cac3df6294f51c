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
from turnwise.tools.validating import Checker


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


@functools.lru_cache(maxsize=256)
def tools_of(specs: str, world: str) -> tuple[Tool, ...]:
    """Return tools that are shown here and run in the world, which checks its own arguments.

    Raises:
        EnvError: a world describes one wrongly; ``world`` says which.
    """
    offered: dict[str, Tool] = {}
    try:
        for number, one in enumerate(_items(json.loads(specs))):
            spec = _spec(one, number)
            if spec.name in offered:
                raise ValueError(f"two tools of the name {spec.name!r}")
            offered[spec.name] = Tool(spec, _elsewhere, _elsewhere)
    except ValueError as error:
        raise EnvError(
            f"The world of {world} offers {error}.",
            "Its side answers with `tools`: a list of {name, description, parameters}, each name once, with a JSON schema of type object.",
        ) from None
    return tuple(offered.values())


def _items(given: Json) -> list[Json]:
    if not isinstance(given, list):
        raise ValueError(f"tools = {given!r:.80}")  # noqa: TRY004 (it is data that is wrong)
    return cast("list[Json]", given)


def _spec(given: Json, number: int) -> ToolSpec:
    if not isinstance(given, dict):
        raise ValueError(f"the tool {given!r:.80}, which is no object")  # noqa: TRY004
    one = cast("dict[str, Json]", given)
    name, description = one.get("name"), one.get("description", "")
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"a tool without a name (number {number + 1}: name = {name!r:.80})")
    if not isinstance(description, str):
        raise ValueError(f"the tool {name!r} with description = {description!r:.80}")  # noqa: TRY004
    parameters: Json = one.get("parameters")
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":  # pyright: ignore[reportUnknownMemberType]
        raise ValueError(f"the tool {name!r} with parameters = {parameters!r:.80}")
    schema = cast("dict[str, Json]", parameters)
    try:
        Checker(schema)
    except ValueError as error:
        raise ValueError(f"the tool {name!r}; the schema of its parameters {error}") from None
    return ToolSpec(name, description, schema)


def _elsewhere(*_: Json, **__: Json) -> dict[str, Json]:
    raise EnvError("The tools of a world of others run in it.", "Call them through step().")
