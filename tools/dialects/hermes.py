"""Hermes-JSON, which Qwen2.5, Qwen3 and many others write: JSON objects between ``<tool_call>`` tags."""

from __future__ import annotations

import json
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused
from turnwise.tools.reading import read_call, value_end

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_USAGE = """To call one, write its name and arguments as JSON between tags:
<tool_call>
{"name": "...", "arguments": {...}}
</tool_call>"""


def read(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """Tool calls between ``<tool_call>`` tags, each a JSON object ``{"name", "arguments"}``.

    >>> read('I look. <tool_call>{"name": "search", "arguments": {"query": "red"}}</tool_call>').calls
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
            calls.append(read_call(text[begin:close], nth(len(calls))))
        except ToolError as error:
            return refused(text, error)
        done = close + len(_CLOSE)
    said.append(text[done:])
    return ParsedText("".join(said).strip() if calls else text, tuple(calls))


def render(calls: Sequence[ToolCall]) -> str:
    """
    >>> print(render([ToolCall("search", {"query": "red"})]))
    <tool_call>
    {"name": "search", "arguments": {"query": "red"}}
    </tool_call>
    """
    return "\n".join(
        f"<tool_call>\n{json.dumps({'name': c.name, 'arguments': dict(c.arguments)}, ensure_ascii=False)}\n</tool_call>"
        for c in calls
    )


HERMES = component(
    "dialect",
    "hermes",
    about="JSON between <tool_call> tags, as Hermes, Qwen2.5, Qwen3 and many others write it.",
)(Dialect("hermes", read, render, _USAGE, tried=0))
