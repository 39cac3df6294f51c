"""Gymnasium spaces of chat messages, so that wrappers, vector environments and checkers work."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from gymnasium.wrappers.utils import create_zero_array

from turnwise.envs.messages import Message, Messages

_WORDS = ("search", "click", "buy", "look", "the", "red", "[", "]", "1", "back")


class MessageSpace(spaces.Space[Message | str]):
    """Actions: an assistant message, or its text."""

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> Message:
        return Message("assistant", " ".join(self.np_random.choice(_WORDS, size=3).tolist()))

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) or (isinstance(x, Message) and x.role == "assistant")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSpace)

    def __repr__(self) -> str:
        return "MessageSpace()"


class MessagesSpace(spaces.Space[Messages]):
    """Observations: what the environment says at one turn."""

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> Messages:
        return Messages((Message("user", " ".join(self.np_random.choice(_WORDS, size=3).tolist())),))

    def contains(self, x: Any) -> bool:
        return isinstance(x, Messages) and all(isinstance(message, Message) for message in x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessagesSpace)

    def __repr__(self) -> str:
        return "MessagesSpace()"


@create_zero_array.register(MessagesSpace)
def _nothing_said(space: MessagesSpace) -> Messages:
    """Return the empty observation that wrappers which stack or delay observations begin with."""
    return Messages()


@create_zero_array.register(MessageSpace)
def _nothing_done(space: MessageSpace) -> Message:
    return Message("assistant", "")
