"""One call per turn, in any notation or in a line of plain words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from turnwise.envs.acting import call_of
from turnwise.envs.messages import Message
from turnwise.tools.core import Tool, ToolCall

_LINE = re.compile(r"\s*+([a-z_]++)\s*+(.*)", re.DOTALL)
_MARKED = re.compile(r"(\*\*|__|\*|_)(.*)\1")
_LONGEST = 20_000


def read_action(action: Message, tools: Sequence[Tool]) -> ToolCall:
    """The one call of a message: in any notation, or a last line such as ``swap 1 , 2 .``

    >>> from turnwise.tools.core import tool
    >>> def swap(first: int, second: int) -> None: ...
    >>> read_action(Message("assistant", "The first is larger.\\nswap 1 , 2 ."), [tool(swap)])
    ToolCall(name='swap', arguments={'first': '1', 'second': '2'}, id='')

    Raises:
        ToolError: there is none, or more than one.
    """
    if action.tool_calls:
        return call_of(action, tools)
    text = "\n".join(map(_unmarked, action.content[-_LONGEST:].split("\n")))
    return _line(text, tools) or call_of(replace(action, content=text), tools)


def _unmarked(line: str) -> str:
    """A line without the marks that print all of it bold or slanted.

    >>> _unmarked("**answer[12]**"), _unmarked("2 ** 3")
    ('answer[12]', '2 ** 3')
    """
    found = _MARKED.fullmatch(line.strip())
    return found[2] if found else line


def _line(text: str, tools: Sequence[Tool]) -> ToolCall | None:
    """The call that a last line in plain words is: the tool's name and as many values as it takes."""
    match = _LINE.fullmatch(text.strip().rpartition("\n")[2])
    spec = next((tool.spec for tool in tools if match and tool.spec.name == match[1]), None)
    if match is None or spec is None or match[0][match.end(1) : match.end(1) + 1] in ("(", "[", "{"):
        return None  # with a bracket at once it is a call
    names, said = spec.argument_names, _unwrapped(match[2].lstrip(":= ").rstrip().removesuffix(".").rstrip())
    values = [said] if len(names) == 1 else re.split(r"\s*,\s*|\s+", said) if said else []
    return ToolCall(spec.name, dict(zip(names, values, strict=False))) if len(values) <= len(names) else None


def _unwrapped(said: str) -> str:
    """An argument list without the brackets around all of it."""
    for opening, closing in ("[]", "()"):
        if said.startswith(opening) and said.endswith(closing) and opening not in said[1:]:
            return said[1:-1].strip()
    return said
