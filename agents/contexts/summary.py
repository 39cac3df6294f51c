"""The policy's own summary stands for the turns before."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.agents.contexts.core import ContextShown, Exchange, TalkSoFar, flat, told
from turnwise.envs.messages import Message
from turnwise.registry import component

ASK = (
    "Your context is nearly full. Write down what you must still know to finish the task: what you found, what you did, "
    "what is left to do. All but the task and the newest turns will be gone. Do not act now."
)
SAID = "Of the turns before you wrote down:"


@component("context", "summary", paper="2607.05378")
def summary(
    talk: TalkSoFar, *, tokens: int = 2048, keep: int = 1, ask: str = ASK, said: str = SAID
) -> ContextShown:
    """Asks the policy for a summary where the context would have more than ``tokens``, and shows it in place of the turns before.

    The newest ``keep`` turns before it stay as they were. CompactionRL (2607.05378) trains through summaries this way; the
    words in which they are asked for are ours.
    """
    head, passages, acted = rewritten(talk, keep, said)
    full = acted and talk.frame() + talk.size(head) + sum(talk.sizes(passages)) > tokens
    return ContextShown((*head, *flat(passages)), ask if full else "")


class Rewritten(NamedTuple):
    """The context after the newest memory: the head that tells it, what is shown since, and whether the policy acted since."""

    head: tuple[Message, ...]
    passages: tuple[Exchange, ...]
    acted: bool


def rewritten(talk: TalkSoFar, keep: int, said: str) -> Rewritten:
    """The context after the newest memory, with the newest ``keep`` actions before it."""
    last = max((n for n, passage in enumerate(talk.passages) if passage.memory), default=None)
    if last is None:
        return Rewritten(talk.head, talk.passages, bool(talk.passages))
    wrote = talk.passages[last].action.content
    before = [passage for passage in talk.passages[:last] if not passage.memory]
    kept = before[len(before) - min(keep, len(before)) :]
    since = talk.passages[last + 1 :]
    return Rewritten(told(talk.head, f"{said}\n{wrote}"), (*kept, *since), bool(since))
