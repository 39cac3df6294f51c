"""Read tool calls out of a model's text: hermes-JSON and ``verb[argument]``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool

_TAGGED = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_VERB = re.compile(r"\s*([A-Za-z_]\w*)\[(.*)\]\s*", re.DOTALL)
_TOO_DEEP = 32
_TOO_LONG = 100_000


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
    calls: list[ToolCall] = []
    for index, match in enumerate(_TAGGED.finditer(text)):
        try:
            calls.append(_read_call(match.group(1), f"call_{index}"))
        except ToolError as error:
            return ParsedText(text, (), str(error))
    return ParsedText(_TAGGED.sub("", text).strip() if calls else text, tuple(calls))


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
    if match is None:
        usage = ", ".join(f"{tool.spec.name}[{''.join(tool.spec.argument_names[:1])}]" for tool in tools)
        raise ToolError(f"No action found. Write one of: {usage}.")
    found = find_tool(tools, match.group(1))
    names = found.spec.argument_names
    return ToolCall(found.spec.name, {names[0]: match.group(2)} if names else {})


def _read_call(text: str, call_id: str) -> ToolCall:
    if len(text) > _TOO_LONG or (
        text.count("{") + text.count("[") > 10 * _TOO_DEEP and _depth(text) > _TOO_DEEP
    ):
        raise ToolError("The tool call is too large or nested too deeply.")
    try:
        data = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The tool call is not valid JSON: {str(error)[:200]}.") from None
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise ToolError('A tool call is {"name": "...", "arguments": {...}}.')
    arguments = data.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ToolError("A tool call's arguments must be a JSON object.")
    return ToolCall(data["name"], arguments, call_id)


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += (character in "{[") - (character in "}]")
        deepest = max(deepest, depth)
    return deepest


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)
