"""Mistral's ``[TOOL_CALLS]``: a JSON list of calls (v3, v7) or ``name[ARGS]{…}`` (v11 and later)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused
from turnwise.tools.reading import Json, item_texts, load_json, read_call, value_end

_MARK = "[TOOL_CALLS]"
_BLANK = re.compile(r"\s*+")
_NAMED = re.compile(r"\s*+([\w.:/-]++)\s*+(?:\[CALL_ID\]\s*+(\w++)\s*+)?(?:\[ARGS\])?\s*+(?=\{)")
_USAGE = """To call one or several, end the message with a list of them as JSON:
[TOOL_CALLS] [{"name": "...", "arguments": {...}}]"""


def read(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """
    >>> read('[TOOL_CALLS] [{"name": "f", "arguments": {}, "id": "a1b2c3d4e"}]').calls
    (ToolCall(name='f', arguments={}, id='a1b2c3d4e'),)
    >>> read('I look.[TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]g[ARGS]{}').calls
    (ToolCall(name='f', arguments={'x': 1}, id='call_0'), ToolCall(name='g', arguments={}, id='call_1'))
    """
    said, mark, body = text.partition(_MARK)
    if not mark:
        return ParsedText(text, ())
    try:
        calls = _listed(body) if body.lstrip().startswith("[") else _named(body)
    except ToolError as error:
        return refused(text, error)
    return ParsedText(said.strip(), calls) if calls else refused(text, ToolError(f"No call follows {_MARK}."))


def render(calls: Sequence[ToolCall]) -> str:
    data = [{"name": call.name, "arguments": dict(call.arguments), "id": call.id} for call in calls]
    return f"{_MARK} {json.dumps([{k: v for k, v in one.items() if v != ''} for one in data], ensure_ascii=False)}"


def _listed(body: str) -> tuple[ToolCall, ...]:
    value_end(body, body.index("["))
    text = body.strip().removesuffix("</s>")
    ids = [_id(one, place) for place, one in enumerate(load_json(text))]
    return tuple(read_call(one, call_id) for one, call_id in zip(item_texts(text), ids, strict=True))


def _id(data: Json, place: int) -> str:
    given = data.get("id") if isinstance(data, dict) else None
    return given if isinstance(given, str) and given else nth(place)


def _named(body: str) -> tuple[ToolCall, ...]:
    calls: list[ToolCall] = []
    body = body.rstrip().removesuffix("</s>").rstrip()
    place = 0
    while place < len(body):
        if blank := _BLANK.match(body, place):
            place = blank.end()
        if body.startswith(_MARK, place):
            place += len(_MARK)
        match = _NAMED.match(body, place)
        if match is None:
            raise ToolError(f"After {_MARK} stands a list of calls as JSON, or name[ARGS]{{...}}.")
        end = value_end(body, match.end())
        written = body[match.end() : end if end > match.end() else len(body)]
        calls.append(ToolCall(match[1], load_json(written), match[2] or nth(len(calls)), written.strip()))
        place = end if end > match.end() else len(body)
    return tuple(calls)


MISTRAL = component(
    "dialect", "mistral", about="[TOOL_CALLS] and a list of JSON, or NAME[ARGS]{…}, as Mistral writes it."
)(Dialect("mistral", read, render, _USAGE, tried=2))
