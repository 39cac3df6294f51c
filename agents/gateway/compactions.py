"""An agent's own compactions: conversations that go on from another under a beginning that the agent wrote anew.

They are read from words alone, as callers are. A conversation that begins as another did (with the same first message) and then
tells a whole reply of it within its own first words goes on from that reply, which was written for it: a summary. One that
begins alike and tells some of the other's replies as replies, with a gap before them, was cut: it goes on from the newest of
these. Where the beginning is another, nobody knows what the two have to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.messages import Message

TELLING = 16
"""Letters from which on words that stand within others are no chance."""
MOST_LETTERS = 1 << 20
"""Letters of a beginning beyond which nobody looks for a summary: that is a search for each reply."""


class Compaction(NamedTuple):
    """The reply of a session that a conversation goes on from; ``summary``: its words stand in the new beginning."""

    reply: int
    summary: bool


class _SaidReply(NamedTuple):
    number: int
    first: str
    words: str


class Compactions:
    """The replies of a session, by what they said and how their conversations began."""

    def __init__(self) -> None:
        self._said: list[_SaidReply] = []
        self._by_reply: dict[tuple[str, str], int] = {}

    def note(self, number: int, messages: Sequence[Message], reply: Message) -> None:
        """Remember a reply to a conversation."""
        first, words = messages[0].content.strip(), reply.content.strip()
        self._by_reply[first, str(reply)] = number
        if len(words) >= TELLING:
            self._said.append(_SaidReply(number, first, words))

    def of(self, messages: Sequence[Message]) -> Compaction | None:
        """The reply that a conversation without a stored beginning goes on from; None: it begins one, or nobody knows."""
        first = messages[0].content.strip()
        told = [message for message in messages if message.role != "assistant"]
        if sum(len(message.content) for message in told) <= MOST_LETTERS:
            everything = "\n".join(message.content for message in told)
            for said in reversed(self._said):
                if said.words in everything and first.startswith(said.first):
                    return Compaction(said.number, summary=True)
        repeated = (
            self._by_reply.get((first, str(message))) for message in messages if message.role == "assistant"
        )
        cut = max((number for number in repeated if number is not None), default=None)
        return None if cut is None else Compaction(cut, summary=False)
