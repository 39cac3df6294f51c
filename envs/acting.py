"""The calls of an agent's message: its own, or those that its text holds in any notation.

Every environment reads messages here, so that an action said in one notation is understood in all, and a message with
more calls than a turn takes is answered the same way everywhere: none of them is carried out.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from turnwise.envs.messages import Message
from turnwise.tools.core import Tool, ToolCall, ToolError
from turnwise.tools.notations import WrittenCalls, explain, read_written

MOST_CALLS = 16
"""Calls that one message may make where a turn takes several."""
UNREADABLE = (
    'That looks like a call but cannot be read. Make a tool call, or write only calls, one a line: name(argument="value", '
    'other=3), or {"name": "name", "arguments": {"argument": "value"}}. Words to the user stand alone.'
)
_SIGNS = re.compile(r"[(\[{<`:]")
_JSON_CALL = re.compile(r"[\"'](?:name|function|tool|arguments|parameters)[\"']\s*:|<tool_call|```")


def call_of(action: Message, tools: Sequence[Tool]) -> ToolCall:
    """The one call of a message, where a turn takes one.

    Raises:
        ToolError: there is none, or more than one; the text says what to write.
    """
    return calls_of(action, tools, 1)[0]


def calls_of(action: Message, tools: Sequence[Tool], most: int) -> tuple[ToolCall, ...]:
    """The calls of a message, at least one and at most ``most``.

    Raises:
        ToolError: there is none, or there are too many; the text says what to write.
    """
    found = read_action(action, tools, most).calls
    if not found:
        raise ToolError(explain(action.content, tools))
    return found


def read_action(action: Message, tools: Sequence[Tool], most: int) -> WrittenCalls:
    """The calls of a message, none where it is words; its own ones have the notation ``native``.

    Raises:
        ToolError: a call cannot be read, or there are more than ``most``.
    """
    if action.malformed:
        raise ToolError(action.malformed)
    found = (
        WrittenCalls(action.tool_calls, "native")
        if action.tool_calls
        else read_written(action.content, tools)
    )
    check_number(len(found.calls), most)
    return found


def calls_or_words(action: Message, tools: Sequence[Tool], most: int) -> WrittenCalls:
    """The calls of a message, none where it is words to somebody; words that look like a call are never taken for words.

    Raises:
        ToolError: it is a call that cannot be read, or there are more than ``most``.
    """
    if action.tool_calls or action.malformed:
        return read_action(action, tools, most)
    text = action.content
    if not _SIGNS.search(text):
        return WrittenCalls(())
    try:
        found = read_written(text, tools)
    except ToolError as error:
        raise ToolError(f"{error}\n{UNREADABLE}") from None
    check_number(len(found.calls), most)
    if not found.calls and tools:
        # A pattern of all names would be compiled anew for every list of tools, which takes milliseconds.
        named = tuple(one.spec.name for one in tools if one.spec.name in text)
        if _JSON_CALL.search(text) or (named and _called(named).search(text)):
            raise ToolError(UNREADABLE)
    return found


@functools.lru_cache(maxsize=512)
def _called(names: tuple[str, ...]) -> re.Pattern[str]:
    """A known name with a bracket: at once, or on a line of their own ("I will renew (loan 1)" is words)."""
    known = f"(?:{'|'.join(map(re.escape, names))})"
    return re.compile(rf"\b{known}[(\[{{]|^\s*{known}\s+[(\[{{].*[)\]}}]\s*$", re.MULTILINE)


def check_number(made: int, most: int) -> None:
    """Refuse more calls than a turn takes.

    Raises:
        ToolError: there are more.
    """
    if made > most:
        takes = "one action" if most == 1 else f"at most {most} actions"
        raise ToolError(f"A turn takes {takes}: this message has {made}, and none was carried out.")


def one_act_rules(what: str, turns: int, how: str = "") -> str:
    """Tell the rules of a world that takes one act a message, for the end of its system message.

    >>> one_act_rules("move", 20)
    ' Each message takes one move: one with several spends its turn, and none of them is carried out. You have 20 turns.'
    """
    return (
        f" Each message takes one {what}{how}: one with several spends its turn, and none of them is carried out. "
        f"You have {turns} turns."
    )
