"""Gymnasium spaces of chat messages, so that wrappers, vector environments and checkers work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, overload

from gymnasium import spaces
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from gymnasium.wrappers.utils import create_zero_array

from turnwise.envs.messages import Message, Messages
from turnwise.errors import EnvError

SHARED_BYTES = 1 << 20
"""Bytes of shared memory for one environment's observation: its text is at most some 80,000, and some pictures have room."""
_LENGTH = 4  # bytes of an observation's length, before it
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


class SharedObservations(Sequence[Messages]):
    """Observations of vector environments as they stand in the shared memory at the moment when they are read.

    A deep copy, which vector environments hand out, is a tuple of observations that stay as they are.
    """

    def __init__(self, memory: Any, n: int) -> None:
        self._memory, self._n = memory, n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> Messages: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Messages, ...]: ...
    def __getitem__(self, index: int | slice) -> Messages | tuple[Messages, ...]:
        if isinstance(index, slice):
            return tuple(self[one] for one in range(*index.indices(self._n)))
        if not -self._n <= index < self._n:
            raise IndexError(index)
        view, start = memoryview(self._memory.get_obj()).cast("B"), index % self._n * SHARED_BYTES
        size = int.from_bytes(view[start : start + _LENGTH], "little")
        data = bytes(view[start + _LENGTH : start + _LENGTH + size])
        return Messages.from_json(json.loads(data)) if data else Messages()

    def __deepcopy__(self, memo: object) -> tuple[Messages, ...]:
        return tuple(self)


@create_shared_memory.register(MessagesSpace)
def _room_for_messages(space: MessagesSpace, n: int = 1, ctx: Any = None) -> Any:
    import multiprocessing

    return (ctx or multiprocessing).Array("B", n * SHARED_BYTES)


@read_from_shared_memory.register(MessagesSpace)
def _shared_messages(space: MessagesSpace, shared_memory: Any, n: int = 1) -> Any:
    return SharedObservations(shared_memory, n)


@write_to_shared_memory.register(MessagesSpace)
def _share_messages(space: MessagesSpace, index: int, value: Messages, shared_memory: Any) -> None:
    data = json.dumps(value.to_json()).encode()
    if len(data) > SHARED_BYTES - _LENGTH:
        raise EnvError(
            f"An observation of {len(data)} bytes has no room in the shared memory, which has {SHARED_BYTES} for each environment.",
            'Make the vector environment with vector_kwargs={"shared_memory": False}.',
        )
    view, start = memoryview(shared_memory.get_obj()).cast("B"), index * SHARED_BYTES
    view[start + _LENGTH : start + _LENGTH + len(data)] = data
    view[start : start + _LENGTH] = len(data).to_bytes(_LENGTH, "little")
