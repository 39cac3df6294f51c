"""Hosts of environments (`turnwise serve-workers`) in processes that tests kill, and something that stands between them and a run."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import psutil

from turnwise.tools.processes import module_path

CODE = """
import sys
for given in {before!r}:
    exec(given)
from turnwise.cli import main
main()
"""


class Host:
    """``turnwise serve-workers`` on a port that it keeps over restarts.

    Args:
        token_file: that it has.
        processes: how many it offers.
        before: statements that its process executes first.
        inside: a command in which it is started, such as one that enters a network namespace.
        address: where it listens.
    """

    def __init__(
        self,
        token_file: Path,
        *,
        processes: int = 1,
        before: Sequence[str] = (),
        inside: Sequence[str] = (),
        address: str = "127.0.0.1",
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as door:
            port = door.getsockname()[1]
        self.address = f"{address}:{port}"
        place = "--host", address, "--port", str(port), "--processes", str(processes)
        self._command = [*inside, sys.executable, "-c", CODE.format(before=tuple(before))]
        self._command += ["serve-workers", "--token-file", str(token_file), "--with-parent", *place]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = subprocess.Popen(
            self._command,
            env={**os.environ, "PYTHONPATH": module_path()},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self._process.stderr is not None
        said: list[bytes] = []
        while not (said and said[-1].startswith(b"ready: ")):
            said.append(self._process.stderr.readline())
            assert said[-1], b"".join(said).decode()
        self._draining = threading.Thread(target=self._drain, args=(self._process.stderr,), daemon=True)
        self._draining.start()

    def _drain(self, stream: IO[bytes]) -> None:
        with stream:
            stream.read()

    @property
    def family(self) -> list[int]:
        """The processes of the host and of all that it started."""
        return [
            self._process.pid,
            *(one.pid for one in psutil.Process(self._process.pid).children(recursive=True)),
        ]

    def send(self, how: int) -> None:
        """Send the host's own process a signal."""
        self._process.send_signal(how)

    def end(self, how: int = signal.SIGKILL) -> list[int]:
        """End it by a signal; the numbers of all that it had, which may take a moment to end."""
        had = self.family
        self._process.send_signal(how)
        self._process.wait(60)
        self._draining.join(60)
        return had

    def close(self) -> None:
        """End it if it runs."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self.end()


class Between:
    """Stands between a run and a host, and does to what the host says whatever is asked.

    Args:
        address: of the host.
        change: what becomes of bytes that the host sends; None: the connection ends there.
    """

    def __init__(self, address: str, change: Callable[[bytes], bytes | None]) -> None:
        host, _, port = address.rpartition(":")
        self._to, self._change = (host, int(port)), change
        self._door = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.address = f"127.0.0.1:{self._door.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """Take no more connections, and end those that there are."""
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        for end in (self._door, *self._ends):
            end.close()

    def _run(self) -> None:
        while True:
            try:
                run, _ = self._door.accept()
            except OSError:
                return
            host = socket.create_connection(self._to)
            self._ends += [run, host]
            for here, there, change in ((run, host, bytes), (host, run, self._change)):
                threading.Thread(target=_carry, args=(here, there, change), daemon=True).start()


def _carry(here: socket.socket, there: socket.socket, change: Callable[[bytes], bytes | None]) -> None:
    with contextlib.suppress(OSError):
        while data := here.recv(1 << 16):
            changed = change(data)
            if changed is None:
                break
            there.sendall(changed)
    for end in (here, there):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
