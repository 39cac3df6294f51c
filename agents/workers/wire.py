"""Messages between a worker process and the run: pickled frames, each with its length before it.

Both sides run the same code for the same user; pickle is no wall between them, nor is one meant here
(docs/threat-model.md). Between machines each frame is sealed besides (:mod:`turnwise.agents.workers.sealed`).
"""

from __future__ import annotations

import contextlib
import hmac
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
_TAG = 32
MOST_BYTES = 1 << 30
"""A longer frame is none of ours."""


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


class HostBeat(NamedTuple):
    """A sign of life of the host that a worker process is on, whatever the process does."""


class WorkerEnded(NamedTuple):
    """The last frame of a host: how the worker process ended, and the last that it printed.

    ``why`` is set where the host ended it, so that no environment is to blame.
    """

    code: int | None
    words: bytes
    why: str = ""


class Seal(NamedTuple):
    """The keys by which two sides know each other's frames, which nobody else can make or change."""

    sent: bytes
    received: bytes


class Packed(NamedTuple):
    """The state of a :class:`Snapshot` that left its process."""

    state: bytes


def pack(frame: object) -> bytes:
    """A frame as it goes over the wire."""
    return framed(pickle.dumps(frame, pickle.HIGHEST_PROTOCOL))


def framed(data: bytes) -> bytes:
    """Bytes with their length before them."""
    return _LENGTH.pack(len(data)) + data


def unframed(data: bytes) -> memoryview:
    """The bytes of a frame without their length."""
    return memoryview(data)[_LENGTH.size :]


class Connection:
    """Sends and receives frames; any thread may send, one receives.

    Args:
        end: the socket.
        seal: the keys of the frames; None: they are not sealed, and stay in this machine.

    Attributes:
        damage: what was wrong with a frame, after which nothing more is received.
    """

    def __init__(self, end: socket.socket, seal: Seal | None = None) -> None:
        self.damage = ""
        self._end, self._seal = end, seal
        self._lock = threading.Lock()
        self._file = end.makefile("rb")
        self._sent = self._received = 0

    def send(self, frame: object) -> None:
        """Raises OSError where the other side is gone, and what pickle raises for what cannot be sent."""
        self.send_packed(pack(frame))

    def send_packed(self, data: bytes) -> None:
        """Send what :func:`pack` or :func:`framed` made."""
        with self._lock:
            if self._seal is not None:
                tag, self._sent = _tag(self._seal.sent, self._sent, data), self._sent + 1
                data = tag + data
            self._end.sendall(data)

    def receive(self) -> Any:
        """The next frame; None where the other side is gone."""
        data = self.receive_packed()
        return None if data is None else pickle.loads(unframed(data))

    def receive_packed(self) -> bytes | None:
        """The next frame, not unpacked, its length before it; None where the other side is gone, or sent something else."""
        tag_size = _TAG if self._seal is not None else 0
        try:
            head = self._file.read(tag_size + _LENGTH.size)
            if len(head) < tag_size + _LENGTH.size:
                return None
            tag, length = head[:tag_size], head[tag_size:]
            (size,) = _LENGTH.unpack(length)
            if size > MOST_BYTES:
                self.damage = f"a frame says that it has {size:,} bytes"
                return None
            data = length + self._file.read(size)
        except (OSError, ValueError):  # it was closed, here or there
            return None
        if len(data) < _LENGTH.size + size:
            return None
        if self._seal is not None:
            if not hmac.compare_digest(tag, _tag(self._seal.received, self._received, data)):
                self.damage = "a frame was changed on its way, or is somebody else's"
                return None
            self._received += 1
        return data

    def hang_up(self) -> None:
        """Have both sides receive nothing more."""
        with contextlib.suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up, and let the socket go."""
        self.hang_up()
        self._file.close()
        self._end.close()


def _tag(key: bytes, number: int, data: bytes) -> bytes:
    """Proves that a frame is the one of this number, of whoever has the key."""
    return hmac.digest(key, _LENGTH.pack(number) + data, "sha256")
