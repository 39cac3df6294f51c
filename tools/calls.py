"""Read tool calls out of a model's text: hermes-JSON and ``verb[argument]``.

The other ways in which models write calls are in :mod:`turnwise.tools.dialects`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool
from turnwise.tools.reading import UNSAYABLE, call_of, load_json, value_end

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_VERB = re.compile(r"\s*([A-Za-z_]\w*)\[(.*)\]\s*", re.DOTALL)


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
            calls.append(call_of(load_json(text[begin:close]), f"call_{len(calls)}"))
        except ToolError as error:
            return ParsedText(text, (), str(error))
        done = close + len(_CLOSE)
    said.append(text[done:])
    return ParsedText("".join(said).strip() if calls else text, tuple(calls))


def parse_verb(text: str, tools: Sequence[Tool]) -> ToolCall:
    """A call written as ``verb[argument]``, the argument going to the tool's first parameter.

    >>> def click(target: str) -> None: ...
    >>> from turnwise.tools.core import tool
    >>> parse_verb("click[buy now]", [tool(click)])
    ToolCall(name='click', arguments={'target': 'buy now'}, id='')

    Raises:
        ToolError: the text is no call, or there is no such tool.
    """
    match = _VERB.fullmatch(text)
    if match is None or UNSAYABLE.search(text):
        broken = parse_hermes(text).error
        if broken is not None:
            raise ToolError(broken)
        usage = ", ".join(f"{tool.spec.name}[{''.join(tool.spec.argument_names[:1])}]" for tool in tools)
        raise ToolError(f"No action found. Write one of: {usage}.")
    found = find_tool(tools, match.group(1))
    names = found.spec.argument_names
    return ToolCall(found.spec.name, {names[0]: match.group(2)} if names else {})
