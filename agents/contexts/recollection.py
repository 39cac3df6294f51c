"""Memories that a scripted policy writes: where a context manager asks for one, or gives it a tool for them."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.contexts.core import ContextView
from turnwise.agents.core import History
from turnwise.envs.messages import Message, Messages

MOST_LETTERS = 300
NOTHING = "Nothing yet."


def recollection(view: ContextView, head: Messages, needed: Sequence[str]) -> str:
    """A memory of what is shown: the lines that the solution still needs, or the newest ones where nobody says which.

    Args:
        view: the context in which it is asked for.
        head: what was said before the first action; every context shows it.
        needed: pieces of lines, the one that is needed first before the others; what is not shown any more is lost.
    """
    shown = view.messages[: len(view.messages) - len(view.asked)]
    beside = {line for message in head for line in message.content.splitlines()}
    lines = [line for message in shown for line in str(message).splitlines() if line not in beside]
    found = (next((line for line in reversed(lines) if piece in line), "") for piece in needed)
    kept = dict.fromkeys(line for line in found if line)
    return "\n".join(kept) or _newest(shown)


def noted(history: History, needed: Sequence[str]) -> str:
    """The lines of the newest observation that the solution still needs, and of which no memory was written yet."""
    if not history.turns:
        return ""  # what was said before the first action stands in every context
    written = "\n".join(str(turn.action) for turn in history.turns if turn.kind == "memory")
    lines = [line for message in history.observation for line in message.content.splitlines()]
    return "\n".join(line for line in lines if line not in written and any(piece in line for piece in needed))


def _newest(shown: Sequence[Message]) -> str:
    """Each answer's first line after the action, the newest ones that have 300 letters."""
    lines: list[str] = []
    begins = next((n for n, message in enumerate(shown) if message.role == "assistant"), len(shown))
    action = ""
    for message in shown[begins:]:
        first = str(message).strip().partition("\n")[0]
        if message.role == "assistant":
            action = first
        else:
            lines.append(f"{action}: {first}"[:MOST_LETTERS])
    while lines and sum(len(line) + 1 for line in lines) > MOST_LETTERS:
        lines.pop(0)
    return "\n".join(lines)
