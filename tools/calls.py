"""Read tool calls out of a model's text: hermes-JSON and ``verb[argument]``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_VERB = re.compile(r"\s*([A-Za-z_]\w*)\[(.*)\]\s*", re.DOTALL)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)  # outside of JSON strings
_UNSAYABLE = re.compile("[\x00\ud800-\udfff]")
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
    said: list[str] = []
    calls: list[ToolCall] = []
    done = 0
    while (tag := text.find(_OPEN, done)) >= 0:
        said.append(text[done:tag])
        begin = tag + len(_OPEN)
        try:
            close = text.find(_CLOSE, _value_end(text, begin))
            if close < 0:
                raise ToolError(f"A tool call is not closed: write {_CLOSE} after it.")
            calls.append(_read_call(text[begin:close], f"call_{len(calls)}"))
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
    if match is None or _UNSAYABLE.search(text):
        broken = parse_hermes(text).error
        if broken is not None:
            raise ToolError(broken)
        usage = ", ".join(f"{tool.spec.name}[{''.join(tool.spec.argument_names[:1])}]" for tool in tools)
        raise ToolError(f"No action found. Write one of: {usage}.")
    found = find_tool(tools, match.group(1))
    names = found.spec.argument_names
    return ToolCall(found.spec.name, {names[0]: match.group(2)} if names else {})


def _read_call(text: str, call_id: str) -> ToolCall:
    try:
        data = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique
        )
    except ValueError as error:
        raise ToolError(f"The tool call is not valid JSON: {str(error)[:200]}.") from None
    if any(map(_UNSAYABLE.search, _strings(data))):
        raise ToolError("The tool call holds a character that is no text: NUL or half of a surrogate pair.")
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise ToolError('A tool call is {"name": "...", "arguments": {...}}.')
    arguments = data.get("arguments", {})
    if not isinstance(arguments, dict):
        raise ToolError("A tool call's arguments must be a JSON object.")
    return ToolCall(data["name"], arguments, call_id)


def _value_end(text: str, begin: int) -> int:
    """Where the JSON value that begins here ends; ``begin`` if it does not."""
    depth = 0
    for match in _BRACKET.finditer(text, begin):
        depth += (match[0] in ("[", "{")) - (match[0] in ("]", "}"))
        if depth > _TOO_DEEP or match.end() - begin > _TOO_LONG:
            raise ToolError("The tool call is too large or nested too deeply.")
        if depth <= 0 and match[0] in ("]", "}"):
            return match.end()
    return begin


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(number: str) -> float:
    if not math.isfinite(value := float(number)):
        raise ValueError(f"{number[:20]} is too large")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)
