"""Speech acts out of words: what is said in a message, and what kind of words stand in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from turnwise.envs.acting import calls_or_words
from turnwise.envs.dialogue.vocabulary import AGREE, LEAVE, REFUSE
from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import without_thoughts
from turnwise.envs.worlds.sessions import SpokenMessage
from turnwise.tools.core import Tool, ToolError, find_tool, tool

_WORD = re.compile(r"[a-z]+|\d+")
_AGREEING = re.compile(
    r"\b(?:fine (?:with|by|for) me|happy with|suits me|works for me|i take it|sounds (?:good|fair))\b"
)
_LEAVING = re.compile(
    r"\b(?:see you|take care$|so long|until (?:next|later|tomorrow)|(?:nice|good|great) day$|good night|talk (?:soon|later))"
)
_LONGEST = 2000  # characters of what is said


def say(text: str) -> str:
    """Say something to the other, in plain words."""
    return text


SAY = tool(say)


def read_message(action: Message, tools: Sequence[Tool]) -> SpokenMessage:
    """What is said in a message, in its text or in the one call of ``say``, in any notation.

    Raises:
        ToolError: there is nothing in it, or too much.
    """
    text = _text(action, tools)
    if len(text) > _LONGEST:
        raise ToolError(f"Say at most {_LONGEST} characters.")
    words = tuple(_WORD.findall(text.lower()))
    if not words:
        raise ToolError("Say something.")
    sayable = "".join(sign if sign.isprintable() else " " for sign in text)
    return SpokenMessage(words, sayable)


def _text(action: Message, tools: Sequence[Tool]) -> str:
    found = calls_or_words(action, tools, 1).calls
    return (
        find_tool(tools, found[0].name).validate(found[0])["text"]
        if found
        else without_thoughts(action.content)
    )


def has(words: Sequence[str], family: Collection[str]) -> bool:
    """Whether a word of the family is there.

    >>> has(("i", "agree", "then"), AGREE)
    True
    """
    return any(word in family for word in words)


def agrees(words: Sequence[str]) -> bool:
    """Whether the words agree, and do not deny it.

    >>> agrees(("no", "deal")), agrees(("it", "is", "a", "deal"))
    (False, True)
    """
    agreed = has(words, AGREE) or _AGREEING.search(" ".join(words)) is not None
    return agreed and not has(words, REFUSE)


def leaves(words: Sequence[str]) -> bool:
    """Whether the words take leave.

    >>> leaves(("see", "you", "tomorrow")), leaves(("i", "see"))
    (True, False)
    """
    return has(words, LEAVE) or _LEAVING.search(" ".join(words)) is not None


def named(words: Sequence[str], families: Mapping[str, Collection[str]]) -> list[str]:
    """Names of the families that a word comes from, in the families' order.

    >>> named(("too", "expensive"), {"cost": {"cost", "expensive"}, "time": {"time"}})
    ['cost']
    """
    return [name for name, family in families.items() if name in words or has(words, family)]
