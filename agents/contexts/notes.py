"""A tool for notes, which stay when turns go."""

from __future__ import annotations

from turnwise.agents.contexts.core import ContextShown, TalkSoFar, flat, told
from turnwise.agents.contexts.window import window_begin
from turnwise.envs.messages import Message
from turnwise.registry import component
from turnwise.tools.core import ToolCall, tool

SAID = "Your notes:"


def note(text: str) -> str:
    """Keep a note for yourself. Notes stay in sight when old turns are gone. It takes no turn."""
    return "Noted."


TOOLS = (tool(note),)


def _write(text: str) -> Message:
    return Message("assistant", "", (ToolCall("note", {"text": text}),))


@component("context", "notes")
def notes(talk: TalkSoFar, *, tokens: int = 2048, keep: float = 0.5, said: str = SAID) -> ContextShown:
    """Gives the policy a tool ``note``; shows system message, task, the notes whose turns are gone, and the newest turns.

    Turns go as with ``window``. The newest notes are shown that have half of the room for turns together.
    """
    head = talk.frame(TOOLS) + talk.size(talk.head)
    room = max(tokens - head, 0)
    begin = window_begin(talk.sizes(talk.passages), head, tokens - room // 2, keep)
    kept: list[str] = []
    for passage in reversed(talk.passages[:begin]):
        if not passage.memory:
            continue
        found = [str(call.arguments.get("text", "")) for call in passage.action.tool_calls]
        grown = told(talk.head, "\n".join((said, *found, *kept)))
        if talk.frame(TOOLS) + talk.size(grown) > head + room // 2:
            break
        kept = [*found, *kept]
    shown = told(talk.head, "\n".join((said, *kept))) if kept else talk.head
    return ContextShown((*shown, *flat(talk.passages[begin:])), tools=TOOLS, write=_write)
