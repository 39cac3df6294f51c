"""GLM's tags: the tool's name between ``<tool_call>`` tags, then its arguments, each as a key and a value.

Text stands as it is, all else as JSON. GLM-4.5 writes a line break between tags and GLM-4.7 none; both are read. Written from
vLLM's pages on its parsers (docs.vllm.ai, ``tool_parsers/glm4_moe_tool_parser`` and ``parser/glm47_moe``, read on 2026-11-27)
and from the chat template of GLM-4.5-Air as TRL 1.16 carries it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from turnwise.registry import component
from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.core import Dialect, nth, refused, spec_named
from turnwise.tools.reading import check_sayable, typed, written

_OPEN, _END = "<tool_call>", "</arg_value>"
_NAME = re.compile(r"\s*+([^\s<>{}()\[\]\"']++)")
_KEY = re.compile(r"\s*+<arg_key>([^<\n]++)</arg_key>\s*+<arg_value>")
_CLOSES = re.compile(r"\s*+</tool_call>")
_USAGE = """To call one, write:
<tool_call>NAME
<arg_key>ARGUMENT</arg_key>
<arg_value>value</arg_value>
</tool_call>"""


def read(text: str, specs: Sequence[ToolSpec] = ()) -> ParsedText:
    """
    >>> read("<tool_call>f\\n<arg_key>x</arg_key>\\n<arg_value>1</arg_value>\\n</tool_call>").calls
    (ToolCall(name='f', arguments={'x': 1}, id='call_0'),)
    """
    said: list[str] = []
    calls: list[ToolCall] = []
    done = 0
    try:
        while (tag := text.find(_OPEN, done)) >= 0:
            said.append(text[done:tag])
            call, done = _call(text, tag + len(_OPEN), specs, len(calls))
            calls.append(call)
    except ToolError as error:
        return refused(text, error)
    said.append(text[done:])
    return ParsedText("".join(said).strip() if calls else text, tuple(calls))


def render(calls: Sequence[ToolCall]) -> str:
    """
    Raises:
        ToolError: a name, a key or a value holds what ends it.
    """
    return "\n".join(map(_written, calls))


def _call(text: str, place: int, specs: Sequence[ToolSpec], number: int) -> tuple[ToolCall, int]:
    name = _NAME.match(text, place)
    if name is None:
        raise ToolError(f"After {_OPEN} stands the name of a tool.")
    spec, place = spec_named(specs, name[1]), name.end()
    fields = spec.parameters.get("properties", {}) if spec else {}
    arguments: dict[str, object] = {}
    while key := _KEY.match(text, place):
        end = text.find(_END, key.end())
        if end < 0:
            raise ToolError(f"The value of {key[1][:80]} is not closed: write {_END} after it.")
        argument = key[1].strip()
        if argument in arguments:
            raise ToolError(f"The argument {argument[:80]} is given twice.")
        arguments[argument] = typed(text[key.end() : end], fields.get(argument))
        place = end + len(_END)
    closes = _CLOSES.match(text, place)
    if closes is None:
        raise ToolError(
            "After a tool's name stand its arguments, each <arg_key>…</arg_key><arg_value>…</arg_value>, and then </tool_call>."
        )
    check_sayable([name[1], *arguments])
    return ToolCall(name[1], arguments, nth(number)), closes.end()


def _written(call: ToolCall) -> str:
    if not _NAME.fullmatch(call.name):
        raise ToolError(f"GLM's tags have no way to name a tool {call.name[:80]!r}.")
    lines = [f"{_OPEN}{call.name}"]
    for key, value in call.arguments.items():
        text = written(value)
        if _END in text:
            raise ToolError(f"GLM's tags have no way to say {_END} inside a value.")
        if not key.strip() or key != key.strip() or "<" in key or "\n" in key:
            raise ToolError(f"GLM's tags have no way to name an argument {key[:80]!r}.")
        lines.append(f"<arg_key>{key}</arg_key>\n<arg_value>{text}{_END}")
    return "\n".join([*lines, "</tool_call>"])


GLM = component("dialect", "glm", about="Tags with a key and a value for each argument, as GLM writes them.")(
    Dialect("glm", read, render, _USAGE, tried=6, ends=("<|observation|>",))
)
