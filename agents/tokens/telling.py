"""Instructions to the policy beside what the environment says: a text below the first message of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from turnwise.envs.messages import Message
from turnwise.tools.dialects.core import Dialect

_TOOLS = "You may call tools. They are, as JSON schemas:"


def told_of_tools(schemas: Sequence[str], dialect: Dialect) -> str:
    """The words that tell of tools where a server or a template does not: each tool's schema, and how it is called."""
    return "\n".join((_TOOLS, *schemas, dialect.usage))


def told_below(conversation: Sequence[Message], text: str) -> list[Message]:
    """The conversation whose first message ends in a paragraph more; as it is, if there is nothing to tell.

    >>> told_below([Message("user", "Buy a mug."), Message("user", "?")], "Hint: search mug")[0].content
    'Buy a mug.\\n\\nHint: search mug'
    """
    if not text:
        return [*conversation]
    first, *others = conversation
    return [replace(first, content=f"{first.content}\n\n{text}"), *others]
