"""What the policy is told beside what the environment says: a text below the first message of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from turnwise.envs.messages import Message


def told_below(conversation: Sequence[Message], text: str) -> list[Message]:
    """The conversation whose first message ends in a paragraph more; as it is, if there is nothing to tell.

    >>> told_below([Message("user", "Buy a mug."), Message("user", "?")], "Hint: search mug")[0].content
    'Buy a mug.\\n\\nHint: search mug'
    """
    if not text:
        return [*conversation]
    first, *others = conversation
    return [replace(first, content=f"{first.content}\n\n{text}"), *others]
