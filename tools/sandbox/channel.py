"""The host's end of a supervisor: frames with deadlines, and answers of limited size."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.tools.sandbox.core import MIB, PathError, SandboxError

_GRACE = 30.0  # seconds that a supervisor may take beyond what it was asked to take
_MOST = 2048 * MIB  # no answer is longer
_PARTS = ("frames", "files", "commands", "supervisor")

BOOT = """
import json,os,struct,sys,types
def take(n):
    parts=[]
    while n:
        part=os.read(0,n)
        if not part: os._exit(0)
        parts.append(part); n-=len(part)
    return b"".join(parts)
for name,text in json.loads(take(struct.unpack(">I",take(4))[0])):
    module=sys.modules[name]=types.ModuleType(name)
    if "." in name: setattr(sys.modules[name.rpartition(".")[0]],name.rpartition(".")[2],module)
    exec(compile(text,name,"exec"),module.__dict__)
module.main()
"""
"""Program with which a root's Python is started (``python3 -I -S -c BOOT settings``): it loads the supervisor from stdin."""


class Channel:
    """A byte stream to and from a supervisor over a socket, which it owns.

    ``marked``: what comes back is in pieces, each with the 8 bytes that a Docker daemon puts before it.
    """

    def __init__(self, connected: socket.socket, *, marked: bool = False) -> None:
        self._socket, self._marked = connected, marked
        self._left = 0
        connected.setblocking(False)

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of it; TimeoutError at the deadline (monotonic seconds), EOFError where nobody reads."""
        view = memoryview(data)
        while view:
            self._wait(select.POLLOUT, deadline)
            try:
                view = view[self._socket.send(view) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise EOFError(str(error)) from None

    def receive(self, most: int, deadline: float) -> bytes:
        """Between 1 and ``most`` bytes; TimeoutError at the deadline, EOFError at the end."""
        if not self._marked:
            return self._some(most, deadline)
        while not self._left:
            mark = b""
            while len(mark) < 8:
                mark += self._some(8 - len(mark), deadline)
            self._left = struct.unpack(">I", mark[4:])[0]
        data = self._some(min(most, self._left), deadline)
        self._left -= len(data)
        return data

    def hang_up(self) -> None:
        """End both directions: the supervisor ends, and whoever waits here gets an EOFError."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the descriptor; only when nobody waits on it, since its number is used again."""
        self._socket.close()

    def _some(self, most: int, deadline: float) -> bytes:
        while True:
            self._wait(select.POLLIN, deadline)
            try:
                data = self._socket.recv(min(most, MIB))
            except BlockingIOError:
                continue
            except OSError as error:
                raise EOFError(str(error)) from None
            if not data:
                raise EOFError
            return data

    def _wait(self, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise TimeoutError


class ChannelAnswer(NamedTuple):
    """The answer of a supervisor: a few named values, and bytes."""

    header: dict[str, Any]
    payload: bytes


class Supervisor:
    """Asks one question at a time. After a failure it is ``broken``, and every question fails."""

    def __init__(self, channel: Channel, *, timeout: float = 30.0) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self.broken = ""
        deadline = time.monotonic() + timeout
        source = _source()
        try:
            self._guarded(lambda: channel.send(struct.pack(">I", len(source)) + source, deadline))
            self._receive(deadline)
        except BaseException:
            self.close()
            raise

    def ask(self, op: str, payload: bytes = b"", *, timeout: float = 60.0, **header: object) -> ChannelAnswer:
        """Do ``op`` in the sandbox.

        Raises:
            PathError: it was refused.
            SandboxError: the supervisor does not answer in time, or is gone.
        """
        deadline = time.monotonic() + timeout + _GRACE
        text = json.dumps({"op": op, "bytes": len(payload), **header}).encode()
        with self._lock:
            if self.broken:
                raise _gone(self.broken)
            self._guarded(lambda: self._channel.send(struct.pack(">I", len(text)) + text + payload, deadline))
            answer = self._receive(deadline)
        if "refused" in answer.header:
            raise PathError(str(answer.header["refused"]))
        return answer

    def close(self) -> None:
        """Let it end; whoever is asking gets a :class:`SandboxError`."""
        self.broken = self.broken or "it was closed"
        self._channel.hang_up()
        with self._lock:
            self._channel.close()

    def _receive(self, deadline: float) -> ChannelAnswer:
        (length,) = struct.unpack(">I", self._exactly(4, deadline))
        if length > MIB * 16:
            self._fail("its answer makes no sense")
        header = json.loads(self._exactly(length, deadline))
        count = int(header.get("bytes", 0))
        if not 0 <= count <= _MOST:
            self._fail("its answer is too long")
        return ChannelAnswer(header, self._exactly(count, deadline))

    def _exactly(self, count: int, deadline: float) -> bytes:
        parts: list[bytes] = []
        while count:
            part = self._guarded(lambda: self._channel.receive(count, deadline))  # noqa: B023
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _guarded(self, action: Any) -> Any:
        try:
            return action()
        except TimeoutError:
            self._fail("it did not answer in time")
        except EOFError:
            self._fail("it ended")

    def _fail(self, why: str) -> None:
        self.broken = why
        raise _gone(why)


def _gone(why: str) -> SandboxError:
    return SandboxError(
        f"The sandbox is gone: {why}.",
        "Start another; if that fails too, `turnwise doctor` says whether this backend works here.",
    )


@cache
def _source() -> bytes:
    package = f"{__package__}.inside"
    names = package.split(".")
    parents = [[".".join(names[: end + 1]), ""] for end in range(len(names))]
    folder = Path(__file__).parent / "inside"
    parts = [[f"{package}.{part}", (folder / f"{part}.py").read_text("utf-8")] for part in _PARTS]
    return json.dumps(parents + parts).encode()
