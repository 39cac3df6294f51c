"""A worker process of this machine: started, listened to, and ended with all that it started."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from turnwise.agents.workers.wire import Connection, Hello, pack
from turnwise.tools.processes import module_path

FLOOD_BYTES = 64 << 20
"""Bytes that a process may print past Python's own streams within ten seconds."""
_TAIL = 4096


class Ending(NamedTuple):
    """The end of a worker process.

    Attributes:
        code: its exit code, or minus its signal; None: it is not known.
        words: the last that it printed.
        why: set where no environment can be to blame, since its host ended it or is gone.
    """

    code: int | None
    words: bytes = b""
    why: str = ""

    def __str__(self) -> str:
        if self.why:
            return self.why
        if self.code is None:
            return "does not answer"
        if self.code >= 0:
            return f"ended with code {self.code}"
        known = -self.code in set(signal.Signals)
        name = signal.Signals(-self.code).name if known else f"signal {-self.code}"
        return f"was ended by {name}" + (" (is there too little memory?)" if name == "SIGKILL" else "")


class WorkerProcess(Protocol):
    """A process that environments run in, here or on another host.

    Attributes:
        place: the host that it is on; empty: this machine.
    """

    place: str

    def send_packed(self, data: bytes) -> None:
        """Send it a frame; raises OSError where it is gone."""
        ...

    def receive(self) -> Any:
        """Receive what it says next; None where it has ended or is gone."""
        ...

    def look(self) -> None:
        """Called each second: see whether its host still gives a sign of life."""
        ...

    def kill(self) -> None:
        """End it, and all that it started, at once."""
        ...

    def wait(self, seconds: float) -> Ending | None:
        """Wait for its end; None where it has not come in this time."""
        ...

    def close(self, seconds: float) -> None:
        """Let go of what is left of it, when it has ended."""
        ...


class LocalProcess:
    """One of this machine, with its keeper over it."""

    def __init__(self, number: int) -> None:
        self.place = ""
        self._tail: deque[bytes] = deque(maxlen=8)
        ours, theirs = socket.socketpair()
        # -P: the working directory's files must not stand for the standard library's.
        command = [sys.executable, "-P", "-m", "turnwise.agents.workers", str(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": module_path()}
        environment.setdefault("PYTHONHASHSEED", "0")  # keys of states with sets agree among processes
        self._process = _spawn(command, theirs.fileno(), environment)
        theirs.close()
        self._connection = Connection(ours)
        self.send_packed(pack(Hello(tuple(sys.path), dict(os.environ))))
        self._draining = threading.Thread(target=self._drain, name=f"worker {number}", daemon=True)
        self._draining.start()

    def send_packed(self, data: bytes) -> None:
        self._connection.send_packed(data)

    def receive(self) -> Any:
        return self._connection.receive()

    def receive_packed(self) -> bytes | None:
        """Receive what it says next, not unpacked."""
        return self._connection.receive_packed()

    def worker_pid(self) -> int:
        """The number of the process itself, which its keeper has started; 0 where it is not known."""
        keeper = self._process.pid
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0])
        return 0

    def look(self) -> None:
        """This machine gives signs of life, or nothing does."""

    def kill(self) -> None:
        self._process.terminate()  # its keeper kills the worker, then whatever is left

    def wait(self, seconds: float) -> Ending | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(seconds)
            return Ending(code, b"".join(self._tail)[-_TAIL:])
        return None

    def close(self, seconds: float) -> None:
        if self._process.poll() is None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        self._connection.close()
        self._draining.join(seconds)

    def _drain(self) -> None:
        """Read what the process prints, keep the end, and end it if it floods."""
        stream: IO[bytes] | None = self._process.stdout
        assert stream is not None
        since, size = time.monotonic(), 0
        while data := os.read(stream.fileno(), 1 << 16):
            self._tail.append(data[-_TAIL:])
            size += len(data)
            if (now := time.monotonic()) - since > 10:
                since, size = now, 0
            if size > FLOOD_BYTES:
                self._tail.append(b"\n[it printed without end]")
                self.kill()
        stream.close()


# The keeper is informed when the thread that started it ends, so one thread that lasts starts them all.
_spawner: list[concurrent.futures.ThreadPoolExecutor] = []
_spawner_lock = threading.Lock()


def _after_fork() -> None:
    """A forked child does not have that thread."""
    global _spawner_lock
    _spawner_lock = threading.Lock()
    _spawner.clear()


os.register_at_fork(after_in_child=_after_fork)


def _spawn(command: list[str], descriptor: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    with _spawner_lock:
        if not _spawner:
            _spawner.append(concurrent.futures.ThreadPoolExecutor(1, "turnwise-spawner"))
    return (
        _spawner[0]
        .submit(
            subprocess.Popen,
            command,
            pass_fds=(descriptor,),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        .result()
    )
