"""A report that the policy writes anew before each action."""

from __future__ import annotations

from turnwise.agents.contexts.core import ContextShown, TalkSoFar, flat
from turnwise.agents.contexts.summary import rewritten
from turnwise.registry import component

ASK = (
    "Write your report anew: all that you know and need for the task, what the newest answer adds to it, and what to do next. "
    "Only the task, this report and the newest turn will be shown to you. Do not act now."
)
SAID = "Your report:"


@component("context", "workspace", paper="2511.07327")
def workspace(talk: TalkSoFar, *, every: int = 1, ask: str = ASK, said: str = SAID) -> ContextShown:
    """Shows the task, the policy's report and the newest turn; the report is written anew after every ``every`` actions.

    IterResearch (Chen et al. 2025): the state of each round is (question, report, last action and its result), so that the
    context does not grow. There one reply holds report and action; here the report is a turn of its own, with its own
    credit. Between reports the turns since the last one are shown.
    """
    head, passages, _ = rewritten(talk, 1, said)
    acted = 0
    for passage in reversed(talk.passages):
        if passage.memory:
            break
        acted += 1
    return ContextShown((*head, *flat(passages)), ask if acted >= max(every, 1) else "")
