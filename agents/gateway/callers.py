"""Caller of a conversation: read from the words of calls alone, and unknown where anything speaks against it."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.messages import Message

_TELLING = 16
"""Characters from which on words that stand within others are no chance."""
_LONGEST_TASK = 1 << 20
"""Letters of a conversation's task beyond which nobody looks for who called for it: that is a search for each reply."""


class Callers:
    """The replies of a session that called for something, by the words that they called with."""

    def __init__(self) -> None:
        self._unanswered: dict[int, list[str]] = {}
        self._said: list[str] = []

    def note(self, number: int, reply: Message) -> None:
        """Remember by what later conversations are known to come of this reply."""
        if reply.tool_calls:
            values = [value for call in reply.tool_calls for value in call.arguments.values()]
            words = [value.strip() for value in values if isinstance(value, str) and value.strip()]
            self._unanswered[number] = words
        if len(reply.content.strip()) >= _TELLING:
            self._said.append(reply.content.strip())

    def answered(self, number: int) -> None:
        """A reply was told what came of its calls: no conversation begins with them any more."""
        self._unanswered.pop(number, None)

    def caller_of(self, messages: Sequence[Message]) -> int | None:
        """The newest reply that called for this conversation, in words of which its task is made; None: nobody knows.

        A conversation that goes on from another by retelling it, or is told what another reply said, may come of more.
        Whoever begins it once more has a reason that nobody knows.
        """
        told = [message.content.strip() for message in messages if message.role == "user"]
        if sum(map(len, told)) > _LONGEST_TASK or any(m.role == "assistant" for m in messages):
            return None
        everything = "\n".join(message.content for message in messages)
        if any(said in everything for said in [*self._said]):
            return None
        for number, called in sorted([*self._unanswered.items()], reverse=True):
            for place, words in enumerate(called):
                if words in told or (len(words) >= _TELLING and any(words in one for one in told)):
                    del called[place]
                    return number
        return None
