"""Tags named after tools: ``<search>red scarf</search>`` or ``<open><id>3</id></open>``.

The first form, Search-R1's, gives its text to the tool's first parameter. ``<``, ``>`` and ``&`` inside
values are read and written as ``&lt;``, ``&gt;`` and ``&amp;``; a bare one is read as itself.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from turnwise.registry import component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused
from turnwise.tools.reading import Json, typed, written

_USAGE = """To call one, write its arguments between tags of its name:
<NAME><ARGUMENT>value</ARGUMENT></NAME>
A tool's first argument may stand alone: <NAME>value</NAME>"""
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def read(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """
    >>> search = ToolSpec("search", "", {"properties": {"query": {"type": "string"}}})
    >>> read("I look. <search>red scarf</search>", [search]).calls
    (ToolCall(name='search', arguments={'query': 'red scarf'}, id='call_0'),)
    """
    if not specs or "<" not in text:
        return ParsedText(text, ())
    by_name = {spec.name: spec for spec in specs}
    opens = _opening(tuple(by_name))
    said: list[str] = []
    calls: list[ToolCall] = []
    done = 0
    try:
        while match := opens.search(text, done):
            end = text.find(f"</{match[1]}>", match.end())
            if end < 0:
                raise ToolError(f"<{match[1]}> is not closed: write </{match[1]}> after it.")
            said.append(text[done : match.start()])
            arguments = _arguments(text[match.end() : end], by_name[match[1]])
            calls.append(ToolCall(match[1], arguments, nth(len(calls))))
            done = end + len(match[1]) + 3
    except ToolError as error:
        return refused(text, error)
    said.append(text[done:])
    return ParsedText("".join(said).strip() if calls else text, tuple(calls))


def render(calls: Sequence[ToolCall]) -> str:
    return "\n".join(
        f"<{call.name}>"
        + "".join(f"<{key}>{_escape(written(value))}</{key}>" for key, value in call.arguments.items())
        + f"</{call.name}>"
        for call in calls
    )


@functools.lru_cache(256)  # worlds draw names for their tools: too many for the cache of re
def _opening(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("<(" + "|".join(map(re.escape, names)) + ")>")


def _arguments(body: str, spec: ToolSpec) -> dict[str, Json]:
    fields: Mapping[str, Json] = spec.parameters.get("properties", {})
    if not fields:
        if body.strip():
            raise ToolError(f"{spec.name} takes no arguments.")
        return {}
    child = re.compile(r"\s*<(" + "|".join(map(re.escape, fields)) + r")>(.*?)</\1>\s*", re.DOTALL)
    arguments: dict[str, Json] = {}
    place = 0
    while match := child.match(body, place):
        if match[1] in arguments:
            raise ToolError(f"The argument {match[1]} is given twice.")
        arguments[match[1]] = typed(_unescape(match[2]), fields[match[1]])
        place = match.end()
    if not arguments and body:
        first = next(iter(fields))
        return {first: typed(_unescape(body.strip()), fields[first])}
    if place < len(body):
        raise ToolError(f"<{spec.name}> holds something that is no argument of it: {body[place:][:80]!r}.")
    return arguments


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _unescape(text: str) -> str:
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


TAGS = component("dialect", "tags", about="Tags named after tools, as Search-R1 writes them.")(
    Dialect("tags", read, render, _USAGE, tried=4)
)
