"""The calls in a message, in whatever way they are written; words that look like a call are never taken for words."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.acting import read_action
from turnwise.envs.messages import Message
from turnwise.tools.core import Tool, ToolCall, ToolError
from turnwise.tools.notations import without_thoughts

MOST_CALLS = 16  # in one message
_JSON_CALL = re.compile(r"[\"'](?:name|function|tool|arguments|parameters)[\"']\s*:|<tool_call|```")
_NO_WORDS = re.compile(r"[\[\]{}<>]|^\s*[A-Za-z_][\w.]*\(.*\)\s*$", re.DOTALL)
_WAYS = {"verb": "python", "dialect": "native"}


class ReadMessage(NamedTuple):
    """What a message says: its calls and how they are written, or its words to the user."""

    calls: Sequence[ToolCall]
    dialect: str  # native, python or json; "" where there are no calls
    text: str


def read(action: Message, tools: Sequence[Tool]) -> ReadMessage:
    """The calls of a message, or what it says to the user where it has none.

    Raises:
        ToolError: the message is a call that cannot be read, or too many of them.
    """
    text = without_thoughts(action.content)
    if not action.tool_calls and not any(sign in text for sign in "([{<`:"):
        return ReadMessage((), "", text)
    try:
        found = read_action(action, tools, MOST_CALLS)
    except ToolError as error:
        raise ToolError(f"{error}\n{_HOW}") from None
    if found.calls:
        return ReadMessage(found.calls, _WAYS.get(found.notation, found.notation), "")
    names = _names(tuple(one.spec.name for one in tools)) if tools else None
    if tools and (_JSON_CALL.search(text) or (names and names.search(text)) or _NO_WORDS.search(text)):
        raise ToolError(_HOW)
    return ReadMessage((), "", text)


_HOW = (
    'That looks like a call but cannot be read. Make a tool call, or write only calls, one a line: name(argument="value", '
    'other=3), or {"name": "name", "arguments": {"argument": "value"}}. Words to the user stand alone.'
)


@functools.lru_cache(maxsize=512)
def _names(names: tuple[str, ...]) -> re.Pattern[str]:
    """A known name followed by a bracket."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\s*[(\[{{]")
