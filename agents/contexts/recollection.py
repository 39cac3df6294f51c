"""Notes that a script writes down where a context manager asks: it knows the form, and copies the newest words."""

from __future__ import annotations

from turnwise.agents.contexts.core import ContextView
from turnwise.envs.messages import Message

MOST_LETTERS = 300


def recollection(view: ContextView) -> Message:
    """A memory made of what is shown: each answer's first line after the action, the newest ones that have 300 letters.

    A script's actions come from the environment's state and not from what it reads, so that its memory can do no more than
    show the form.
    """
    lines: list[str] = []
    shown = view.messages[: len(view.messages) - len(view.asked)]
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
    return Message("assistant", "\n".join(lines) or "Nothing yet.")
