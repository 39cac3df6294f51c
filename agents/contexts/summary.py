"""What the policy wrote down stands for the turns before."""

from __future__ import annotations

from turnwise.agents.contexts.core import Conversation, Shown, flat, told
from turnwise.envs.messages import Message
from turnwise.registry import component

ASK = (
    "Your context is nearly full. Write down what you must still know to finish the task: what you found, what you did, "
    "what is left to do. All but the task and the newest turns will be gone. Do not act now."
)
SAID = "Of the turns before you wrote down:"


@component("context", "summary", paper="2607.05378")
def summary(
    talk: Conversation, *, tokens: int = 2048, keep: int = 1, ask: str = ASK, said: str = SAID
) -> Shown:
    """Asks the policy for a summary where the context would have more than ``tokens``, and shows it in place of the turns before.

    The newest ``keep`` turns before it stay as they were. CompactionRL (2607.05378) trains through summaries this way; the
    words in which they are asked for are ours.
    """
    shown, acted = rewritten(talk, keep, said)
    full = acted and talk.frame() + talk.size(shown) > tokens
    return Shown(shown, ask if full else "")


def rewritten(talk: Conversation, keep: int, said: str) -> tuple[tuple[Message, ...], bool]:
    """The context after the newest memory, and whether the policy acted since."""
    last = max((n for n, passage in enumerate(talk.passages) if passage.memory), default=None)
    if last is None:
        return (*talk.head, *flat(talk.passages)), bool(talk.passages)
    wrote = talk.passages[last].action.content
    before = [passage for passage in talk.passages[:last] if not passage.memory]
    kept = before[len(before) - min(keep, len(before)) :]
    since = talk.passages[last + 1 :]
    head = told(talk.head, f"{said}\n{wrote}")
    return (*head, *flat((*kept, *since))), bool(since)
