"""Dialects of tool calling: how calls are written as text, and read out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from turnwise.tools.calls import ParsedText
from turnwise.tools.core import ToolCall, ToolSpec
from turnwise.tools.thoughts import Read, read_beside_thoughts

Render: TypeAlias = Callable[[Sequence[ToolCall]], str]


@dataclass(frozen=True)
class Dialect:
    """One way to write tool calls.

    ``parse(render(calls), specs).calls == calls`` up to the calls' ids. What cannot be read is no exception
    but :attr:`ParsedText.error`, because it is the model that has to be informed; ``render`` raises ``ToolError``
    for what the dialect has no way to say. ``read`` reads a text without thoughts; :meth:`parse` is what callers use.
    ``usage`` tells a model how to write a call. Where a text's dialect is not known, those with the lowest ``tried``
    come first. ``ends`` are control tokens that end a reply after a call, where a template ends others with another one.
    ``unwrap`` takes the words of a reply out of what the dialect writes around all words; thoughts and calls stay.
    """

    name: str
    read: Read
    render: Render
    usage: str
    tried: int = 100
    ends: tuple[str, ...] = ()
    unwrap: Callable[[str], str] = str

    def parse(self, text: str, specs: Sequence[ToolSpec] = (), opened: str = "") -> ParsedText:
        """The calls of a model's text. A call inside a thought is only weighed, and is none.

        ``opened`` is the opening tag of a thought in which the prompt ended (:func:`turnwise.tools.thoughts.left_open`).
        """
        return read_beside_thoughts(self.read, text, specs, opened)


def nth(place: int) -> str:
    """The id of a message's call where the dialect gives it none."""
    return f"call_{place}"


def refused(text: str, error: Exception) -> ParsedText:
    """A message whose calls cannot be read: all of it is content."""
    return ParsedText(text, (), str(error))


def spec_named(specs: Sequence[ToolSpec], name: str) -> ToolSpec | None:
    return next((spec for spec in specs if spec.name == name), None)
