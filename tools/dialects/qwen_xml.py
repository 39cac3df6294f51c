"""Qwen3-Coder's XML: ``<tool_call><function=name><parameter=key>value</parameter></function></tool_call>``.

Values are untyped text, so that code needs no escapes; a parameter's schema says what they stand for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused, spec_named
from turnwise.tools.reading import check_sayable, typed, written

_OPENS = re.compile(r"(?:<tool_call>\s*)?<function=([^>\n]+)>|<tool_call>")
_PARAMETER = re.compile(r"\s*<parameter=([^>\n]+)>\n?")
_CLOSES = re.compile(r"\s*</function>(?:\s*</tool_call>)?")
_END = "</parameter>"
_USAGE = """To call one, write:
<tool_call>
<function=NAME>
<parameter=ARGUMENT>
value
</parameter>
</function>
</tool_call>"""


def parse(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """
    >>> parse("<function=f><parameter=x>\\n1\\n</parameter></function>").calls
    (ToolCall(name='f', arguments={'x': 1}, id='call_0'),)
    """
    said: list[str] = []
    calls: list[ToolCall] = []
    done = 0
    try:
        while match := _OPENS.search(text, done):
            if match[1] is None:
                raise ToolError("After <tool_call> stands <function=NAME>.")
            said.append(text[done : match.start()])
            call, done = _call(text, match, specs, len(calls))
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


def _call(text: str, match: re.Match[str], specs: Sequence[ToolSpec], number: int) -> tuple[ToolCall, int]:
    name, place = match[1].strip(), match.end()
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


QWEN_XML = Dialect("qwen-xml", parse, render, _USAGE)
