"""One call per turn, as a tool call or in a line of text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from turnwise.envs.messages import Message
from turnwise.tools.core import Tool, ToolCall, ToolError
from turnwise.tools.dialects.registry import read_calls

_LINE = re.compile(r"\s*+([a-z_]++)\s*+(.*)", re.DOTALL)
_LONGEST = 20_000


def read_action(action: Message, tools: Sequence[Tool]) -> ToolCall:
    """The one call of a message.

    Raises:
        ToolError: there is none, or more than one.
    """
    return _only(action.tool_calls) if action.tool_calls else read_line(action.content, tools)


def read_line(text: str, tools: Sequence[Tool]) -> ToolCall:
    """A call out of a text: in any dialect, or in the last line that is not empty.

    >>> from turnwise.tools.core import tool
    >>> def swap(first: int, second: int) -> None: ...
    >>> read_line("The first is larger.\\nswap 1 , 2 .", [tool(swap)])
    ToolCall(name='swap', arguments={'first': '1', 'second': '2'}, id='')

    Raises:
        ToolError: there is none.
    """
    if len(text) > _LONGEST:
        raise ToolError(f"A message has at most {_LONGEST} characters.")
    match = _LINE.fullmatch(text.strip().rpartition("\n")[2])
    spec = next((tool.spec for tool in tools if match and tool.spec.name == match[1]), None)
    if match is None or spec is None:
        parsed = read_calls(text, [tool.spec for tool in tools])
        if parsed.calls:
            return _only(parsed.calls)
        usage = ", ".join(f"{tool.spec.name}[{', '.join(tool.spec.argument_names)}]" for tool in tools)
        raise ToolError(parsed.error or f"No action found. Write one of: {usage}.")
    names, said = spec.argument_names, _unwrapped(match[2].rstrip().removesuffix(".").rstrip())
    values = [said] if len(names) == 1 else re.split(r"\s*,\s*|\s+", said) if said else []
    if len(values) > len(names) or (len(names) == 1 and not said):
        raise ToolError(f"{spec.name} takes {len(names)} arguments: {', '.join(names)}.")
    return ToolCall(spec.name, dict(zip(names, values, strict=False)))


def _unwrapped(said: str) -> str:
    """An argument list without the brackets around all of it."""
    for opening, closing in ("[]", "()"):
        if said.startswith(opening) and said.endswith(closing) and opening not in said[1:]:
            return said[1:-1].strip()
    return said


def _only(calls: Sequence[ToolCall]) -> ToolCall:
    if len(calls) != 1:
        raise ToolError("One call per turn.")
    return calls[0]
