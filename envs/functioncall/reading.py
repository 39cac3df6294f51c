"""The calls in a message, in whatever way they are written; words that look like a call are never taken for words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.acting import MOST_CALLS, UNREADABLE, calls_or_words
from turnwise.envs.messages import Message
from turnwise.tools.core import Tool, ToolCall, ToolError
from turnwise.tools.notations import said_beside_thoughts

_NO_WORDS = re.compile(r"[\[\]{}<>]|^\s*[A-Za-z_][\w.]*\(.*\)\s*$", re.DOTALL)
_WAYS = {"verb": "python", "dialect": "native"}


class ReadMessage(NamedTuple):
    """Content of a message: its calls and how they are written, or its words to the user."""

    calls: Sequence[ToolCall]
    dialect: str  # native, python, json or hermes; "" where there are no calls
    text: str


def read(action: Message, tools: Sequence[Tool]) -> ReadMessage:
    """The calls of a message, or what it says to the user where it has none.

    Raises:
        ToolError: the message is a call that cannot be read, or too many of them.
    """
    found = calls_or_words(action, tools, MOST_CALLS)
    if found.calls:
        return ReadMessage(found.calls, _dialect(found.notation, action.content), "")
    text = said_beside_thoughts(action.content)
    if tools and _NO_WORDS.search(text):
        raise ToolError(UNREADABLE)
    return ReadMessage((), "", text)


def _dialect(notation: str, text: str) -> str:
    """The dialect of a notation; tags are a model's own way, which is the native one, unless they are those of Hermes."""
    if notation == "dialect" and "<tool_call>" in text:
        return "hermes"
    return _WAYS.get(notation, notation)
