"""Replies as the policy's server wrote them, found again in what a client tells back.

A server may want its thoughts, signatures and sealed items back as they were; clients drop keys that they do not know. So a reply
that is told back, and is known by its words or by the ids of its calls, is sent to the server with all that was written beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from turnwise.envs.messages import Message
from turnwise.tools.core import ToolCall


class SaidReplies:
    """The replies of a session that carry something beside their words."""

    def __init__(self) -> None:
        self._by_call: dict[str, tuple[ToolCall, Message]] = {}
        self._by_words: dict[str, Message] = {}

    def note(self, reply: Message) -> None:
        """Remember a reply; the newest of the same words."""
        if reply.extra is None and all(call.extra is None for call in reply.tool_calls):
            return
        self._by_call.update({call.id: (call, reply) for call in reply.tool_calls})
        if not reply.tool_calls:
            self._by_words[reply.content.strip()] = reply

    def restored(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """A conversation with what was written beside the replies in it."""
        return tuple(
            self._restored(message) if message.role == "assistant" else message for message in messages
        )

    def _restored(self, told: Message) -> Message:
        if not told.tool_calls:
            known = self._by_words.get(told.content.strip())
            return told if known is None else replace(told, extra=known.extra)
        found = [self._by_call.get(call.id) for call in told.tool_calls]
        calls = [
            call if known is None or known[0].name != call.name else _as_written(call, known[0])
            for call, known in zip(told.tool_calls, found, strict=True)
        ]
        whole = found[0][1] if found[0] is not None else None
        same = whole is not None and [call.id for call in whole.tool_calls] == [one.id for one in calls]
        return replace(
            told, tool_calls=tuple(calls), extra=whole.extra if whole is not None and same else None
        )


def _as_written(told: ToolCall, known: ToolCall) -> ToolCall:
    same = dict(told.arguments) == dict(known.arguments)
    return replace(told, extra=known.extra, written=known.written if same else told.written)
