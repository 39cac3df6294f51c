"""The calls in a message, in whatever way they are written; words that look like a call are never taken for words."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import without_thoughts
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall, ToolError
from turnwise.tools.dialects import pythonic
from turnwise.tools.dialects.registry import read_calls
from turnwise.tools.reading import load_json

MOST_CALLS = 16  # in one message
_FENCE = re.compile(r"```(?:[a-z_]*)[ \t]*\n(.*?)(?:```|$)", re.DOTALL)
_LABEL = re.compile(r"(?:action|call|tool|function)s?\s*:\s*", re.IGNORECASE)
_JSON_CALL = re.compile(r"[\"'](?:name|function|tool|arguments|parameters)[\"']\s*:|<tool_call|```")
_NO_WORDS = re.compile(r"[\[\]{}<>]|^\s*[A-Za-z_][\w.]*\(.*\)\s*$", re.DOTALL)
_NAMES = ("name", "function", "tool", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input")


class ReadMessage(NamedTuple):
    """What a message says: its calls and how they are written, or its words to the user."""

    calls: Sequence[ToolCall]
    dialect: str  # native, python or json; "" where there are no calls
    text: str


def read(action: Message, tools: Sequence[Tool]) -> ReadMessage:
    """The calls of a message, or what it says to the user where it has none.

    Raises:
        ToolError: the message is a call that cannot be read, or too many of them.
    """
    if action.tool_calls:
        found = ReadMessage(action.tool_calls, "native", "")
    else:
        text = without_thoughts(action.content)
        found = _in_text(text, tools)
    if len(found.calls) > MOST_CALLS:
        raise ToolError(f"At most {MOST_CALLS} calls in one message.")
    return found


def _in_text(text: str, tools: Sequence[Tool]) -> ReadMessage:
    if not tools or not any(sign in text for sign in "([{<"):
        return ReadMessage((), "", text)
    names = _names(tuple(one.spec.name for one in tools))
    body = _LABEL.sub("", "\n".join(_FENCE.findall(text)) or text).strip()
    found = _lines(body, tools, names)
    if found:
        return ReadMessage(found, "python", "")
    if "{" in body:
        found = _json_calls(body)
        if found:
            return ReadMessage(found, "native" if "<tool_call" in text else "json", "")
    parsed = read_calls(text, [one.spec for one in tools])
    if parsed.calls:
        return ReadMessage(parsed.calls, "python" if text.lstrip().startswith("[") else "native", "")
    if parsed.error:
        raise ToolError(f"{parsed.error}\n{_HOW}")
    if _JSON_CALL.search(text) or names.search(text) or _NO_WORDS.search(text):
        raise ToolError(_HOW)
    return ReadMessage((), "", text)


_HOW = (
    'That looks like a call but cannot be read. Make a tool call, or write only calls, one a line: name(argument="value", '
    'other=3), or {"name": "name", "arguments": {"argument": "value"}}. Words to the user stand alone.'
)


@functools.lru_cache(maxsize=512)
def _names(names: tuple[str, ...]) -> re.Pattern[str]:
    """A known name followed by a bracket."""
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\s*[(\[{{]")


def _lines(body: str, tools: Sequence[Tool], names: re.Pattern[str]) -> tuple[ToolCall, ...]:
    """Calls written as ``f(x=1)`` or ``f[…]``, one a line and nothing else, or in a list; none where it is not that."""
    if body.startswith("[") and body.endswith("]") and names.match(body, 1):
        lines = [body[1:-1]]
    else:
        lines = [line.strip().rstrip(";") for line in body.split("\n") if line.strip()]
    if not lines or not all(names.match(line) and line[-1] in ")]}" for line in lines):
        return ()
    known = {one.spec.name: one for one in tools}
    written = [_as_python(line, known) for line in lines]
    parsed = pythonic.parse(f"[{', '.join(written)}]", [one.spec for one in tools])
    if parsed.error:
        raise ToolError(f"{parsed.error}\n{_HOW}")
    return parsed.calls


def _as_python(line: str, known: Mapping[str, Tool]) -> str:
    """``f[…]`` with a JSON object, named arguments or values in order, as ``f(x=…)``."""
    cut = min(place for place in (line.find(sign) for sign in "([{") if place >= 0)
    name, inner = line[:cut].strip(), line[cut + 1 : -1].strip()
    if line[cut] == "(":
        return line
    if line[cut] == "{":
        inner = f"{{{inner}}}"
    if inner.startswith("{") and inner.endswith("}"):
        given = load_json(inner)
        return f"{name}(**{given!r})" if isinstance(given, dict) else line
    if not inner or re.match(r"\w+\s*=", inner):
        return f"{name}({inner})"
    properties = known[name].spec.parameters["properties"]
    values = [part.strip() for part in inner.split(",", max(0, len(properties) - 1))]
    given = {key: _typed(value, properties[key]) for key, value in zip(properties, values, strict=False)}
    return f"{name}(**{given!r})"


def _typed(text: str, schema: Mapping[str, Json]) -> Json:
    """A value that stands without quotes, as its parameter wants it."""
    if schema.get("type") == "string":
        return text.strip("\"'")
    if schema.get("type") == "array" and not text.startswith("["):
        return [part.strip() for part in re.split(r" and |;", text)]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _json_calls(body: str) -> tuple[ToolCall, ...]:
    """Calls written as JSON objects; none where the text is no JSON, or no calls."""
    text = re.sub(r"</?tool_call>", "", body).strip()
    if not text.startswith(("{", "[")):
        return ()
    try:
        value: Any = load_json(text)
    except ToolError:
        try:  # one object a line
            value = [load_json(line) for line in text.split("\n") if line.strip()]
        except ToolError:
            return ()
    items = cast("list[Any]", value if isinstance(value, list) else [value])
    found = [_json_call(item, place) for place, item in enumerate(items)]
    return tuple(one for one in found if one) if all(found) else ()


def _json_call(item: Json, place: int) -> ToolCall | None:
    if not isinstance(item, dict):
        return None
    one = cast("dict[str, Json]", item)
    inner = one.get("function")
    if isinstance(inner, dict):  # OpenAI's form
        one = cast("dict[str, Json]", inner)
    name = next((one[key] for key in _NAMES if isinstance(one.get(key), str)), None)
    arguments = next((one[key] for key in _ARGUMENTS if key in one), {})
    if name is None and len(one) == 1:  # {"f": {…}}
        ((name, arguments),) = one.items()
    if isinstance(arguments, str):
        try:
            arguments = load_json(arguments or "{}")
        except ToolError:
            return None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    return ToolCall(name, cast("dict[str, Json]", arguments), f"call_{place}")
