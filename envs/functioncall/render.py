"""Texts for the agent: the system message, the results of calls; and its own calls in the dialect of a task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from turnwise.envs.functioncall.state import Conversation
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json, text_encoder
from turnwise.tools.core import Tool, ToolCall
from turnwise.tools.dialects import hermes, pythonic
from turnwise.tools.notations import positional_names

SYSTEM = (
    "You help a user by calling functions. Do what a request asks for, with several calls at once where you can; then tell "
    "the user in words that it is done, or what was asked. Find ids and values out before you use them. Ask for what is "
    "missing. If no function does it, say that you cannot."
)
_text_of = text_encoder(ensure_ascii=False)
_COMPACT = "calls : name[ value , value ] ; then done ."
HOW: Mapping[str, str] = {
    "python": 'Write calls as Python and nothing beside them, one a line: name(argument="value", other=3).',
    "json": 'Write calls as JSON and nothing beside them: [{"name": "name", "arguments": {"argument": "value"}}].',
    "hermes": 'Write each call as JSON between tags and nothing beside them: <tool_call>{"name": "name", "arguments": {"argument": "value"}}</tool_call>.',
}


def system(talk: Conversation) -> str:
    """The system message of a conversation; it describes the functions where they are no tools of the policy."""
    if talk.compact:
        return f"{_COMPACT} {' , '.join(_usage(one) for one in talk.tools)} ."
    if talk.dialect == "native":
        return SYSTEM
    told = [
        _signature(one) if talk.dialect == "python" else json.dumps(one.spec.to_json()["function"])
        for one in talk.tools
    ]
    return "\n".join((SYSTEM, HOW[talk.dialect], "Functions:", *told))


def _usage(one: Tool) -> str:
    return f"{one.spec.name}[ {' , '.join(one.spec.argument_names)} ]"


def _signature(one: Tool) -> str:
    """A function as Python would declare it, with what its parameters mean."""
    schema = one.spec.parameters
    parameters = schema.get("properties", {})
    told = [f"    {name}: {_meant(field)}" for name, field in parameters.items()]
    optional = {name for name in parameters if name not in schema.get("required", ())}
    names = [
        f"{name}={parameters[name].get('default')!r}" if name in optional else name for name in parameters
    ]
    return "\n".join((f"def {one.spec.name}({', '.join(names)}):  # {one.spec.description}", *told))


def _meant(field: Mapping[str, Any]) -> str:
    inner = cast("Mapping[str, Mapping[str, Any]]", field.get("properties", {}))
    kind = f"one of {field['enum']}" if "enum" in field else field["type"]
    told = f"{kind}. {field.get('description', '')}"
    return (
        f"{told} Fields: {'; '.join(f'{key}: {_meant(value)}' for key, value in inner.items())}"
        if inner
        else told
    )


def result(talk: Conversation, value: Json) -> str:
    """Return a call's answer as text."""
    if not talk.compact:
        return _text_of(value)
    rows = cast("list[Mapping[str, Json]]", value if isinstance(value, list) else [value])
    return (
        " ; ".join(" , ".join(f"{key} {_word(one)}" for key, one in row.items()) for row in rows)
        or "nothing ."
    )


def _word(value: Json) -> str:
    return " ".join(map(str, cast("list[Json]", value))) if isinstance(value, list) else str(value)


def written(talk: Conversation, message: Message) -> Message:
    """A message with calls, its calls written as the task wants them."""
    calls = message.tool_calls
    if not calls or (talk.dialect == "native" and not talk.compact):
        return message
    if talk.compact:
        return Message("assistant", "\n".join(_bracketed(talk, call) for call in calls))
    if talk.dialect == "python":
        return Message("assistant", "\n".join(pythonic.render([call])[1:-1] for call in calls))
    if talk.dialect == "hermes":
        return Message("assistant", hermes.render(calls))
    return Message("assistant", json.dumps([{"name": c.name, "arguments": dict(c.arguments)} for c in calls]))


def _bracketed(talk: Conversation, call: ToolCall) -> str:
    """``name[value , value ]`` where the values are plain and the required ones, else with their names."""
    spec = next(one.spec for one in talk.tools if one.spec.name == call.name)
    values = list(call.arguments.values())
    plain = all(isinstance(one, (str, int, float)) and "," not in str(one) for one in values)
    if plain and positional_names(spec) == list(call.arguments):
        return f"{call.name}[{' , '.join(map(str, values))} ]"
    return f"{call.name}[{json.dumps(dict(call.arguments))}]"
