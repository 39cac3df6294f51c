"""Requirements of dialects: what is written is read again, and nothing is an exception."""

from __future__ import annotations

from turnwise.registry import Component
from turnwise.requirements import Requirements, require, says_what_it_is
from turnwise.tools.core import ToolCall, ToolError, ToolSpec
from turnwise.tools.dialects.hostile import REPEATED, UNCLOSED

_TEXT = {"type": "string"}
_SPECS = [
    ToolSpec(
        "search",
        "Look for it.",
        {"type": "object", "properties": {"query": _TEXT, "limit": {"type": "integer"}}},
    ),
    ToolSpec("open", "Open it.", {"type": "object", "properties": {"id": _TEXT}}),
]
_CALLS = [
    [ToolCall("search", {"query": "red scarf"})],
    [ToolCall("search", {"query": 'a < b & "c"', "limit": 3})],
    [ToolCall("open", {"id": "x1"}), ToolCall("search", {"query": "ä\nb"})],
]


def reads_what_it_writes(entry: Component) -> str:
    """Calls that it renders are parsed to the same names and arguments; what it cannot say is a ToolError."""
    dialect, written = entry.target, 0
    for calls in _CALLS:
        try:
            text = dialect.render(calls)
        except ToolError:
            continue
        found = dialect.parse(text, _SPECS)
        read = [(call.name, dict(call.arguments)) for call in found.calls]
        require(
            read == [(call.name, dict(call.arguments)) for call in calls], f"{text!r} is read as {found}."
        )
        written += 1
    require(written, "It can write none of the calls.")
    return f"{written} of {len(_CALLS)} messages"


def leaves_text_alone(entry: Component) -> None:
    """A text without calls has none, and is the content."""
    for text in ("", "I look for a red scarf.", "1 < 2 [and] {so} on"):
        found = entry.target.parse(text, _SPECS)
        require(not found.calls and not found.error, f"{text!r} is read as {found}.")
        require(found.content.strip() == text.strip(), f"Of {text!r} is left {found.content!r}.")


def never_raises(entry: Component) -> str:
    """Texts that are hard to read give calls or an error to tell the model, never an exception."""
    shapes = {**REPEATED, **UNCLOSED}
    for name, shape in shapes.items():
        for n in (1, 50):
            found = entry.target.parse(shape(n), _SPECS)
            require(isinstance(found.calls, tuple), f"{name}: its calls are {type(found.calls).__name__}.")
    return f"{2 * len(shapes)} texts"


def tells_how(entry: Component) -> None:
    """``usage`` tells a model how to write a call, and the name is the one it is registered under."""
    require(len(entry.target.usage) > 10, "Its usage does not say how a call is written.")
    require(entry.target.name == entry.name, f"Its own name is {entry.target.name!r}.")


REQUIREMENTS: dict[str, Requirements] = {
    "dialect": {
        "says what it is": says_what_it_is,
        "tells how": tells_how,
        "reads what it writes": reads_what_it_writes,
        "leaves text alone": leaves_text_alone,
        "never raises": never_raises,
    }
}
