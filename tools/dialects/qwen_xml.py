"""Qwen3-Coder's XML: ``<tool_call><function=name><parameter=key>value</parameter></function></tool_call>``.

Values are untyped text, so that code needs no escapes; a parameter's schema says what they stand for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from turnwise.registry import component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused, spec_named
from turnwise.tools.reading import check_sayable, typed, written

_OPENS = re.compile(r"<tool_call>\s*+<function=|<function=|<tool_call>")
_NAME = re.compile(r"[^>\n]*+")
_PARAMETER = re.compile(r"\s*+<parameter=([^>\n]++)>\n?")
_CLOSES = re.compile(r"\s*+</function>(?:\s*+</tool_call>)?")
_END = "</parameter>"
_USAGE = """To call one, write:
<tool_call>
<function=NAME>
<parameter=ARGUMENT>
value
</parameter>
</function>
</tool_call>"""


def read(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """
    >>> read("<function=f><parameter=x>\\n1\\n</parameter></function>").calls
    (ToolCall(name='f', arguments={'x': 1}, id='call_0'),)
    """
    said: list[str] = []
    calls: list[ToolCall] = []
    done = 0
    try:
        while opening := _opening(text, done):
            said.append(text[done : opening.begin])
            call, done = _call(text, opening, specs, len(calls))
            calls.append(call)
    except ToolError as error:
        return refused(text, error)
    said.append(text[done:])
    return ParsedText("".join(said).strip() if calls else text, tuple(calls))


def render(calls: Sequence[ToolCall]) -> str:
    """
    Raises:
        ToolError: a value holds the tag that ends it.
    """
    return "\n".join(map(_written, calls))


class _Opening(NamedTuple):
    """``<function=name>``, with ``<tool_call>`` before it or without: where it begins and ends."""

    begin: int
    name: str
    end: int


def _opening(text: str, place: int) -> _Opening | None:
    """The next call's beginning; text is passed over once, however many names in it are not closed.

    Raises:
        ToolError: a ``<tool_call>`` holds no function.
    """
    while match := _OPENS.search(text, place):
        name = _NAME.match(text, match.end()) if match[0].endswith("=") else None
        if name and name[0] and text.startswith(">", name.end()):
            return _Opening(match.start(), name[0].strip(), name.end() + 1)
        if match[0].startswith("<tool_call>"):
            raise ToolError("After <tool_call> stands <function=NAME>.")
        place = name.end() if name else match.end()
    return None


def _call(text: str, opening: _Opening, specs: Sequence[ToolSpec], number: int) -> tuple[ToolCall, int]:
    name, place = opening.name, opening.end
    spec = spec_named(specs, name)
    fields = spec.parameters.get("properties", {}) if spec else {}
    arguments: dict[str, object] = {}
    while parameter := _PARAMETER.match(text, place):
        end = text.find(_END, parameter.end())
        if end < 0:
            raise ToolError(f"The value of {parameter[1][:80]} is not closed: write {_END} after it.")
        key = parameter[1].strip()
        if key in arguments:
            raise ToolError(f"The argument {key[:80]} is given twice.")
        arguments[key] = typed(text[parameter.end() : end].removesuffix("\n"), fields.get(key))
        place = end + len(_END)
    closes = _CLOSES.match(text, place)
    if closes is None:
        raise ToolError("A tool call is not closed: write </function> and </tool_call> after its parameters.")
    check_sayable([name, *arguments])
    return ToolCall(name, arguments, nth(number)), closes.end()


def _written(call: ToolCall) -> str:
    lines = [f"<tool_call>\n<function={call.name}>"]
    for name, value in call.arguments.items():
        text = written(value)
        if _END in text:
            raise ToolError(f"Qwen's XML has no way to say {_END} inside a value.")
        lines.append(f"<parameter={name}>\n{text}\n{_END}")
    return "\n".join([*lines, "</function>\n</tool_call>"])


QWEN_XML = component(
    "dialect", "qwen-xml", about="XML with a tag for each parameter, as Qwen3-Coder writes it."
)(Dialect("qwen-xml", read, render, _USAGE, tried=1))
