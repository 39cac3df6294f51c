"""What an agent's message means here: tool calls, or words to the user."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from turnwise.envs.messages import Message
from turnwise.envs.toolworld.speech import LONGEST
from turnwise.tasks.core import Json
from turnwise.tools.calls import parse_hermes
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool

_VERB = re.compile(r"\s*([A-Za-z_]\w*)\[(.*)\]\s*", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?(?:</think>|$)", re.DOTALL)
_UNSAYABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
MOST_CALLS = 8
"""Calls that one message may make."""


def calls_of(action: Message, tools: Sequence[Tool]) -> tuple[ToolCall, ...]:
    """The calls in a message; none where it is said to the user.

    Calls are the message's own, hermes-JSON in its text, or one ``tool[first, second]`` on its last line, with
    arguments in the order of the schema, which has no commas inside of arguments. Text beside a call is a thought.

    Raises:
        ToolError: the message is a call that cannot be read, or too many of them.
    """
    if action.malformed:
        raise ToolError(action.malformed)
    calls = action.tool_calls
    if not calls and "<tool_call>" in action.content:
        parsed = parse_hermes(action.content)
        if parsed.error is not None:
            raise ToolError(parsed.error)
        calls = parsed.calls
    if not calls and (match := _VERB.fullmatch(action.content.strip().rpartition("\n")[2])):
        found = find_tool(tools, match[1])
        return (ToolCall(match[1], _positional(found, match[2])),)
    if len(calls) > MOST_CALLS:
        raise ToolError(f"At most {MOST_CALLS} calls per message.")
    return calls


def words_of(action: Message) -> str:
    """What is said to the user; thoughts are not.

    Raises:
        ToolError: nothing that can be said.
    """
    text = _THOUGHT.sub("", action.content).strip() if "<think>" in action.content else action.content.strip()
    if not text:
        raise ToolError("Say something to the user, or call a tool.")
    if len(text) > LONGEST or _UNSAYABLE.search(text):
        raise ToolError(f"A message to the user is plain text of at most {LONGEST} characters.")
    return text


def write_call(
    name: str, arguments: Mapping[str, Json], *, compact: bool, thought: str = ""
) -> Message | str:
    """A call as a message: ``tool[first , second ]`` in compact domains, else a structured call."""
    if compact:  # with the spaces a word is the same token as where it was told (agents/policies/small.py)
        call = f"{name}[{' , '.join(str(value) for value in arguments.values())} ]"
        return f"{thought} \n{call}" if thought else call
    return Message("assistant", thought, (ToolCall(name, dict(arguments), "call_0"),))


def as_text(result: Json) -> str:
    """A tool's result as the agent reads it."""
    return (
        result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, separators=(", ", ": "))
    )


def _positional(found: Tool, text: str) -> dict[str, Json]:
    names = found.spec.argument_names
    if not text.strip():
        return {}
    parts = [part.strip() for part in text.split(",", maxsplit=max(0, len(names) - 1))]
    if not names or len(parts) > len(names):
        raise ToolError(f"Usage: {found.spec.name}[{', '.join(names)}].")
    return dict(zip(names, parts, strict=False))
