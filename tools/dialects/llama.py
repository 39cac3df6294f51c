"""Llama 3's JSON: the whole message is ``{"name": …, "parameters": …}``, several of them between semicolons."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused
from turnwise.tools.reading import load_json, read_call, value_end

_TAG = "<|python_tag|>"
_ENDS = re.compile(r"\s*+(?:<\|eom_id\|>|<\|eot_id\|>)?\s*+")
_OPENS = re.compile(r'\s*+\{\s*+"(?:name|type|parameters)"\s*:')
_USAGE = """To call one, write nothing but its name and its arguments as JSON; write several with "; " between them:
{"name": "...", "parameters": {...}}"""


def read(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """
    >>> read('{"name": "search", "parameters": {"query": "red"}}').calls
    (ToolCall(name='search', arguments={'query': 'red'}, id='call_0'),)
    """
    said, tag, body = text.rpartition(_TAG)
    if not tag and not _OPENS.match(body):
        return ParsedText(text, ())
    calls: list[ToolCall] = []
    place = 0
    try:
        while not _ENDS.fullmatch(body, place):
            begin = body.find("{", place)
            if begin < 0 or body[place:begin].strip(" \t\r\n;"):
                raise ToolError("A message that calls tools holds nothing but the calls.")
            end = value_end(body, begin)
            calls.append(_call(body[begin : end if end > begin else len(body)], len(calls)))
            place = end
    except ToolError as error:
        return refused(text, error)
    return ParsedText(said.strip(), tuple(calls)) if calls else refused(text, ToolError("No call follows."))


def render(calls: Sequence[ToolCall]) -> str:
    return "; ".join(
        json.dumps({"name": call.name, "parameters": dict(call.arguments)}, ensure_ascii=False)
        for call in calls
    )


def _call(text: str, place: int) -> ToolCall:
    data = load_json(text)
    if isinstance(data, dict) and "arguments" in data and "parameters" not in data:
        return read_call(text, nth(place))  # what models write that learned the other form first
    return read_call(text, nth(place), "parameters")


LLAMA = component(
    "dialect", "llama", about="JSON and nothing else, several calls between semicolons, as Llama 3 writes it."
)(Dialect("llama", read, render, _USAGE, tried=5))
