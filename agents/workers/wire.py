"""What a worker process and its parent say to each other: pickled frames, each with its length before it.

Both sides run the same code for the same user; pickle is no wall between them, nor is one meant here
(docs/threat-model.md).
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from turnwise.agents.execution.calls import Fault
from turnwise.envs.core import Snapshot
from turnwise.tools.core import ToolSpec

_LENGTH = struct.Struct("<Q")


class Hello(NamedTuple):
    """The first frame to a worker: where its parent finds modules, and its variables."""

    path: tuple[str, ...]
    variables: Mapping[str, str]  # those of the parent's process environment


class Ask(NamedTuple):
    """Call a method of the environment in ``slot``; ``make`` and ``close`` make and unmake it.

    ``arguments`` are pickled apart, positional and named ones: what cannot be read costs this call alone.
    """

    number: int
    slot: int
    method: str
    arguments: bytes
    seconds: float


class WorkerFacts(NamedTuple):
    """The facts about an environment that a policy may use without a call to the worker."""

    agents: tuple[str, ...]
    agent: str
    tools: Mapping[str, tuple[ToolSpec, ...]]


class WorkerAnswer(NamedTuple):
    """The answer to an :class:`Ask`; ``checkpoint`` is a snapshot of the state after it, if that is free."""

    number: int
    value: bytes = b""
    fault: Fault | None = None
    facts: WorkerFacts | None = None
    checkpoint: Snapshot[Any] | None = None

    def raise_fault(self) -> None:
        """Raise what it failed with, if it did."""
        if self.fault is not None:
            raise self.fault


class Beat(NamedTuple):
    """A sign of life: for how many seconds each call has been running, and the process's number."""

    running: Mapping[int, float]
    pid: int


class Parting(NamedTuple):
    """The environment of this call is about to end its process."""

    number: int
    code: int


class Bye(NamedTuple):
    """Close everything and end."""


class Packed(NamedTuple):
    """The state of a :class:`Snapshot` that left its process."""

    state: bytes


def pack(frame: object) -> bytes:
    """A frame as it goes over the wire."""
    data = pickle.dumps(frame, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


class Connection:
    """Sends and receives frames; any thread may send, one receives."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._file = end.makefile("rb")

    def send(self, frame: object) -> None:
        """Raises OSError where the other side is gone, and what pickle raises for what cannot be sent."""
        self.send_packed(pack(frame))

    def send_packed(self, data: bytes) -> None:
        """Send what :func:`pack` made."""
        with self._lock:
            self._end.sendall(data)

    def receive(self) -> Any:
        """The next frame; None where the other side is gone."""
        try:
            head = self._file.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                return None
            (length,) = _LENGTH.unpack(head)
            data = self._file.read(length)
        except OSError:
            return None
        return pickle.loads(data) if len(data) == length else None

    def close(self) -> None:
        """Hang up."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._end.close()
