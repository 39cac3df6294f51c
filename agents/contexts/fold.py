"""Turns of a finished sub-task give way to what the policy says came of it."""

from __future__ import annotations

from turnwise.agents.contexts.core import ContextShown, Exchange, TalkSoFar, flat
from turnwise.agents.contexts.window import window_begin
from turnwise.registry import component
from turnwise.tools.core import ToolError, tool


def fold(turns: int, about: str) -> str:
    """Fold the newest turns away when a sub-task is finished: only `about` stays of them. It takes no turn."""
    if turns < 1:
        raise ToolError("Fold 1 turn or more.")
    return "Folded."


TOOLS = (tool(fold),)


@component("context", "fold")
def folding(talk: TalkSoFar, *, tokens: int = 2048, keep: float = 0.5) -> ContextShown:
    """Gives the policy a tool ``fold(turns, about)``, whose call stands for that many turns before it and never goes.

    Turns that were not folded go as with ``window``.
    """
    stands = list[Exchange]()
    for passage in talk.passages:
        if passage.memory and passage.answer and passage.answer[0].content == "Folded.":
            turns = passage.action.tool_calls[0].arguments["turns"]
            del stands[max(len(stands) - int(turns), 0) :]
        stands.append(passage)
    acted = [passage for passage in stands if not passage.memory]
    folded = [message for passage in stands if passage.memory for message in passage.messages]
    begin = window_begin(
        talk.sizes(acted), talk.frame(TOOLS) + talk.size((*talk.head, *folded)), tokens, keep
    )
    gone = acted[:begin]
    left = [passage for passage in stands if all(passage is not one for one in gone)]
    return ContextShown((*talk.head, *flat(left)), tools=TOOLS)
