"""Read tool calls out of a model's text: hermes-JSON.

The other ways in which models write calls are in :mod:`turnwise.tools.dialects`; :mod:`turnwise.tools.notations` reads
them all.
"""

from __future__ import annotations

from typing import NamedTuple

from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.reading import read_call, value_end

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


class ParsedText(NamedTuple):
    """A model's text, taken apart: what it says, what it calls, what could not be read."""

    content: str
    calls: tuple[ToolCall, ...]
    error: str | None = None


def parse_hermes(text: str) -> ParsedText:
    """Tool calls between ``<tool_call>`` tags, each a JSON object ``{"name", "arguments"}``.

    >>> parse_hermes('I look. <tool_call>{"name": "search", "arguments": {"query": "red"}}</tool_call>').calls
    (ToolCall(name='search', arguments={'query': 'red'}, id='call_0'),)
    """
    said: list[str] = []
    calls: list[ToolCall] = []
    done = 0
    while (tag := text.find(_OPEN, done)) >= 0:
        said.append(text[done:tag])
        begin = tag + len(_OPEN)
        try:
            close = text.find(_CLOSE, value_end(text, begin))
            if close < 0:
                raise ToolError(f"A tool call is not closed: write {_CLOSE} after it.")
            calls.append(read_call(text[begin:close], f"call_{len(calls)}"))
        except ToolError as error:
            return ParsedText(text, (), str(error))
        done = close + len(_CLOSE)
    said.append(text[done:])
    return ParsedText("".join(said).strip() if calls else text, tuple(calls))
