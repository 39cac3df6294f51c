"""The newest turns, below the system message and the task."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.contexts.core import ContextShown, TalkSoFar, flat
from turnwise.registry import component


@component("context", "window")
def window(talk: TalkSoFar, *, tokens: int = 2048, keep: float = 0.5) -> ContextShown:
    """Shows system message, task and newest turns; the oldest go where it would have more than ``tokens``.

    So many go at once that a share ``keep`` of the room for turns is left, so that a prompt extends the one before it for a
    while. The newest turn always stays.
    """
    begin = window_begin(talk.sizes(talk.passages), talk.frame() + talk.size(talk.head), tokens, keep)
    return ContextShown((*talk.head, *flat(talk.passages[begin:])))


def window_begin(sizes: Sequence[int], head: int, most: int, keep: float) -> int:
    """Return the first passage that is shown, as it came about turn by turn.

    >>> [window_begin([10] * n, 20, 60, 0.5) for n in range(8)]
    [0, 0, 0, 0, 0, 3, 3, 3]
    """
    begin, total, left = 0, head, head + keep * max(most - head, 0)
    for newest, size in enumerate(sizes):
        total += size
        if total > most:
            while begin < newest and total > left:
                total -= sizes[begin]
                begin += 1
    return begin
