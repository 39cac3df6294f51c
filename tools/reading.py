"""JSON as models write it: strict, of bounded size, of characters that can be logged."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from turnwise.tools.core import ToolCall, ToolError

Json: TypeAlias = Any

UNSAYABLE = re.compile("[\x00\ud800-\udfff]")
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)  # outside of JSON strings
_SPACE, _COLON, _COMMA = (re.compile(rf"[ \t\r\n]*+{mark}[ \t\r\n]*+") for mark in ("", ":", ",?"))
_DECODER = json.JSONDecoder()
_TOO_DEEP = 32
_TOO_LONG = 100_000


def load_json(text: str) -> Json:
    """A JSON value: no NaN, no infinities, no key twice, no NUL, no half of a surrogate pair.

    Raises:
        ToolError: the text is something else.
    """
    try:
        if text.startswith("\ufeff"):
            raise json.JSONDecodeError("Unexpected UTF-8 BOM (decode using utf-8-sig)", text, 0)
        data = _STRICT.decode(text)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The tool call is not valid JSON: {str(error)[:200]}.") from None
    check_sayable(data)
    return data


def check_sayable(data: Json) -> None:
    """Refuse characters that are no text.

    Raises:
        ToolError: a string holds one.
    """
    if UNSAYABLE.search("\n".join(_strings(data))):
        raise ToolError("The tool call holds a character that is no text: NUL or half of a surrogate pair.")


def value_end(text: str, begin: int) -> int:
    """Find the end of the JSON list or object that begins here; ``begin`` if it has none.

    Raises:
        ToolError: it is too large or nested too deeply to be read.
    """
    depth = 0
    for match in _BRACKET.finditer(text, begin):
        depth += (match[0] in ("[", "{")) - (match[0] in ("]", "}"))
        if depth > _TOO_DEEP or match.end() - begin > _TOO_LONG:
            raise ToolError("The tool call is too large or nested too deeply.")
        if depth <= 0 and match[0] in ("]", "}"):
            return match.end()
    return begin


def read_call(text: str, call_id: str, key: str = "arguments") -> ToolCall:
    """A call out of the JSON text ``{"name": …, key: {…}}``, with its arguments as they are written.

    >>> read_call('{"name": "add", "arguments": {"b":2.50, "a": 1}}', "call_0").written
    '{"b":2.50, "a": 1}'

    Raises:
        ToolError: the text is something else.
    """
    call = call_of(load_json(text), call_id, key)
    return ToolCall(call.name, call.arguments, call.id, _member(text, key))


def item_texts(text: str) -> list[str]:
    """Return the items of a JSON list as they are written. The text was read before.

    >>> item_texts('[{"a": 1.0} ,[2 ]]')
    ['{"a": 1.0}', '[2 ]']
    """
    found: list[str] = []
    place = _SPACE.match(text, text.index("[") + 1).end()  # pyright: ignore[reportOptionalMemberAccess]
    while text[place] != "]":
        begin = place
        _, place = _DECODER.raw_decode(text, begin)
        found.append(text[begin:place])
        place = _COMMA.match(text, place).end()  # pyright: ignore[reportOptionalMemberAccess]
    return found


def _member(text: str, key: str) -> str:
    """Return the value of a key of a JSON object as it is written; "" where it has no such key. The text was read before."""
    place = _SPACE.match(text, text.index("{") + 1).end()  # pyright: ignore[reportOptionalMemberAccess]
    while text[place] != "}":
        name, place = _DECODER.raw_decode(text, place)
        begin = _COLON.match(text, place).end()  # pyright: ignore[reportOptionalMemberAccess]
        _, place = _DECODER.raw_decode(text, begin)
        if name == key:
            return text[begin:place]
        place = _COMMA.match(text, place).end()  # pyright: ignore[reportOptionalMemberAccess]
    return ""


def call_of(data: Json, call_id: str, key: str = "arguments") -> ToolCall:
    """A call out of a JSON object ``{"name": …, key: {…}}``.

    Raises:
        ToolError: the value has another form.
    """
    if not isinstance(data, dict) or not isinstance(data.get("name"), str):
        raise ToolError(f'A tool call is {{"name": "...", "{key}": {{...}}}}.')
    arguments = data.get(key, {})
    if not isinstance(arguments, dict):
        raise ToolError(f"A tool call's {key} must be a JSON object.")
    return ToolCall(data["name"], arguments, call_id)


def typed(text: str, schema: Mapping[str, Json] | None) -> Json:
    """The value that untyped text stands for, where a parameter's schema says what it is.

    Text stays text where the schema wants text; elsewhere it is JSON if it can be read so.

    >>> typed("5", {"type": "integer"}), typed("5", {"type": "string"}), typed("five", None)
    (5, '5', 'five')
    """
    if schema is not None and schema.get("type") == "string":
        value = text
    else:
        try:
            value_end(text, 0)
            value = load_json(text)
        except ToolError:
            value = text
    check_sayable(value)
    return value


def written(value: Json) -> str:
    """The inverse of :func:`typed`: text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _strings(value: object) -> list[str]:
    """All strings in a value, keys among them, in no order."""
    found, left = list[str](), [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, list):
            left.extend(one)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(one, dict):
            found.extend(map(str, one))  # pyright: ignore[reportUnknownArgumentType]
            left.extend(one.values())  # pyright: ignore[reportUnknownArgumentType]
    return found


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


_STRICT = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique)
