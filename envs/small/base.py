"""What the small worlds share: one call per turn, as a tool call or in a line of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, NamedTuple, TypeVar

from turnwise.envs.core import AgentEnv, End, Transition
from turnwise.envs.messages import Message
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolCall, ToolError, find_tool
from turnwise.tools.dialects.registry import read_calls

State = TypeVar("State")
_LINE = re.compile(r"\s*([a-z_]+)\s*(.*?)\s*\.?\s*", re.DOTALL)
_LONGEST = 20_000


class Answer(NamedTuple, Generic[State]):
    """What a call did."""

    state: State
    text: str
    end: End | None = None
    rewards: Mapping[str, float] = {}


class CallEnv(AgentEnv[State]):
    """An environment acted in by one call per turn; the outcome is 1 when it is solved.

    Calls may also be written ``verb argument , argument .`` or ``verb[argument]`` in the last line of a text.
    """

    blocking: ClassVar[bool] = False
    floor: ClassVar[float] = 0.2

    def do(self, state: State, name: str, arguments: Mapping[str, Json]) -> Answer[State]:
        """What a call does; its arguments are checked.

        Raises:
            ToolError: it means nothing here.
        """
        raise NotImplementedError

    def transition(self, state: State, action: Message) -> Transition[State]:
        call = _only(action.tool_calls) if action.tool_calls else read_line(action.content, self.tools)
        arguments = find_tool(self.tools, call.name).validate(call)
        after, text, end, rewards = self.do(state, call.name, arguments)
        outcome = {"outcome": float(end is End.SOLVED)} if end else {}
        return Transition(after, text, {**outcome, **rewards}, end)


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
    names, said = spec.argument_names, _unwrapped(match[2])
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
