"""Old results of tools give way to a line."""

from __future__ import annotations

from dataclasses import replace

from turnwise.agents.contexts.core import ContextShown, Exchange, TalkSoFar, flat
from turnwise.envs.messages import Messages
from turnwise.registry import component

LINE = "(This was cleared. Look again if you need it.)"


@component("context", "clear")
def clear(talk: TalkSoFar, *, tokens: int = 2048, keep: int = 3) -> ContextShown:
    """Shows all that the policy said; where it would have more than ``tokens``, all but the newest ``keep`` answers give way to a line.

    Calls and words of the policy stay. Where these alone are too many, the context is full in the end.
    """
    cleared = [_cleared(passage) for passage in talk.passages]
    full, short = talk.sizes(talk.passages), talk.sizes(cleared)
    begin, total = 0, talk.frame() + talk.size(talk.head)
    for newest, size in enumerate(full):
        total += size
        if total > tokens:
            while begin <= newest - max(keep, 1):
                total -= full[begin] - short[begin]
                begin += 1
    return ContextShown((*talk.head, *flat((*cleared[:begin], *talk.passages[begin:]))))


def _cleared(passage: Exchange) -> Exchange:
    lines = (replace(message, content=LINE, images=()) for message in passage.answer)
    return passage._replace(answer=Messages(lines))
