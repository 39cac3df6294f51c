"""Commands that Ray places: a process for each, wherever Ray finds a processor and a GPU for it.

Their lines come back through Ray, and how they ended; nothing else of theirs passes through it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

_KEPT = (
    "RAY_AUTH",
    "RAY_USAGE",
)  # what a command needs to be in the cluster itself; the rest is an actor's own


class CommandState(NamedTuple):
    """State of a command.

    Attributes:
        code: its exit status, negative where a signal ended it; None while it runs.
        said: what it has written since it was last asked: whether to standard output (else to standard error), and the line.
        pid: of its process.
    """

    code: int | None
    said: tuple[tuple[bool, str], ...]
    pid: int


class CommandActor:
    """Runs one command, in a process of Ray's, with which it ends."""

    def __init__(self) -> None:
        self._program: subprocess.Popen[str] | None = None
        self._said: list[tuple[bool, str]] = []
        self._reading: list[threading.Thread] = []

    def meeting(self) -> tuple[str, int]:
        """This machine's address in the cluster, and a port that is free there."""
        import ray

        host = ray.util.get_node_ip_address()
        with socket.create_server((host, 0)) as door:
            return host, door.getsockname()[1]

    def begin(self, module: str, words: Sequence[str], variables: Mapping[str, str], folder: str) -> None:
        """Start it, in ``folder`` if this machine has that.

        Args:
            module: that this machine's Python runs.
            words: its arguments; it is to end with its parent by itself.
            variables: of its environment, beside those that this process was given and are not Ray's.
            folder: where it runs.
        """
        own = {k: v for k, v in os.environ.items() if not k.startswith("RAY_") or k.startswith(_KEPT)}
        self._program = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            env={**own, **variables, "PYTHONUNBUFFERED": "1"},
            cwd=folder if os.path.isdir(folder) else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        for stream, out in ((self._program.stdout, True), (self._program.stderr, False)):
            assert stream is not None
            reading = threading.Thread(target=self._read, args=(stream, out), daemon=True)
            reading.start()
            self._reading.append(reading)

    def state(self, seen: int) -> CommandState:
        """Return its state; ``seen`` lines have been asked for before."""
        assert self._program is not None
        code = self._program.poll()
        if code is not None:
            for reading in self._reading:  # what it started may hold its ends open
                reading.join(1.0)
        return CommandState(code, tuple(self._said[seen:]), self._program.pid)

    def tell(self, number: int) -> None:
        """Send it a signal."""
        if self._program is not None:
            self._program.send_signal(signal.Signals(number))

    def close(self) -> None:
        """End it, however it is."""
        if self._program is not None:
            with contextlib.suppress(ProcessLookupError):
                self._program.kill()
            self._program.wait()

    def _read(self, stream: IO[str], out: bool) -> None:
        for line in stream:
            self._said.append((out, line.rstrip("\n")))
