"""Hermes-JSON, which Qwen2.5, Qwen3 and many others write: JSON objects between ``<tool_call>`` tags."""

from __future__ import annotations

import json
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.tools.calls import ParsedText, parse_hermes
from turnwise.tools.core import ToolCall, ToolSpec
from turnwise.tools.dialects.core import Dialect

_USAGE = """To call one, write its name and arguments as JSON between tags:
<tool_call>
{"name": "...", "arguments": {...}}
</tool_call>"""


def parse(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    return parse_hermes(text)


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
)(Dialect("hermes", parse, render, _USAGE, tried=0))
