"""The conformance suite: what every backend must do, as checks that run against a live one.

A backend passes a check or declares, in ``lacks``, why it does not claim to; nothing else is conformance.
Checks attack: most of them run a program that tries something, and look at what came of it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from turnwise.tools.sandbox.core import MIB, Backend, ExecResult, Sandbox, SandboxImage, SandboxLimits


class Check(NamedTuple):
    """One thing that holds in every sandbox. ``rows`` are the attack catalogue's numbers (docs/sandboxes.md)."""

    name: str
    group: str
    claim: str
    rows: tuple[int, ...]
    run: Callable[[Lab], None]


class CheckOutcome(NamedTuple):
    """The result of a check: pass, declared (not run, with the reason) or FAIL."""

    check: Check
    result: str
    detail: str
    seconds: float


CHECKS: dict[str, Check] = {}


def check(group: str, claim: str, *rows: int) -> Callable[[Callable[[Lab], None]], Callable[[Lab], None]]:
    """Enter a function into the suite under its own name."""

    def enter(run: Callable[[Lab], None]) -> Callable[[Lab], None]:
        name = run.__name__
        assert name not in CHECKS, name
        CHECKS[name] = Check(name, group, claim, rows, run)
        return run

    return enter


SMALL = SandboxLimits(
    memory=96 * MIB, processes=24, disk=16 * MIB, scratch=4 * MIB, inodes=2000, file_size=12 * MIB,
    seconds=240, output=8 * 1024, flood=4 * MIB,
)  # fmt: skip
"""The limits of checks: small, so that reaching them is quick; but for the time, which no check that does not name
one of its own may reach, however busy the machine is."""


@dataclass
class Lab:
    """A backend under test, one sandbox that is emptied between checks, and bait on the host."""

    backend: Backend
    canary: str
    home: Path
    """A folder of the host with a file that holds the canary."""
    port: int
    """Port of 127.0.0.1 at which a host's process listens."""
    abstract: str
    """The name of a host's abstract unix socket."""
    knocks: list[str] = field(default_factory=list[str])
    """Callers that reached a listener of the host."""
    _shared: Sandbox | None = None

    @property
    def sandbox(self) -> Sandbox:
        """The shared sandbox, empty at the start of each check."""
        if self._shared is None:
            self._shared = self.start()
        return self._shared

    def start(self, image: SandboxImage | None = None, limits: SandboxLimits = SMALL) -> Sandbox:
        """A sandbox of one's own; close it."""
        return self.backend.start(image or SandboxImage(), limits)

    def sh(self, script: str, *, timeout: float | None = None, stdin: bytes = b"") -> ExecResult:
        """Run a shell script in the shared sandbox."""
        return self.sandbox.exec(["bash", "-c", script], timeout=timeout, stdin=stdin)

    def py(self, program: str, *arguments: str, timeout: float | None = None) -> ExecResult:
        """Run a Python program in the shared sandbox."""
        return self.sandbox.exec(["python3", "-c", program, *arguments], timeout=timeout)

    def clean(self) -> None:
        """Empty the shared sandbox, or forget it where it is broken."""
        if self._shared is not None:
            self._shared.restore(SandboxImage())

    def drop(self) -> None:
        """Close the shared sandbox; the next check gets a fresh one."""
        if self._shared is not None:
            self._shared.close()
            self._shared = None


@contextlib.contextmanager
def laboratory(backend: Backend) -> Iterator[Lab]:
    """A lab with bait: a secret in a file, in the environment and in another process; two listeners."""
    canary = f"canary-{uuid.uuid4().hex}"
    names = ("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "TURNWISE_CANARY")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, canary))
    bait = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", canary])
    with tempfile.TemporaryDirectory(prefix="turnwise-bait-") as folder, socket.socket() as tcp:
        home = Path(folder)
        (home / "secret.txt").write_text(canary)
        tcp.bind(("127.0.0.1", 0))
        abstract = f"turnwise-{uuid.uuid4().hex}"
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(f"\0{abstract}")
        lab = Lab(backend, canary, home, tcp.getsockname()[1], abstract)
        for listener, kind in ((tcp, "tcp"), (unix, "unix")):
            listener.listen()
            threading.Thread(target=_answer, args=(listener, kind, lab.knocks), daemon=True).start()
        try:
            yield lab
        finally:
            lab.drop()
            unix.close()
            bait.kill()
            bait.wait()
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def run_check(lab: Lab, which: Check) -> CheckOutcome:
    """Run one check, or say that it is declared."""
    declared = lab.backend.lacks.get(which.name)
    if declared is not None:
        return CheckOutcome(which, "declared", declared, 0.0)
    started = time.monotonic()
    result, detail = "pass", ""
    try:
        which.run(lab)
        lab.clean()
    except Exception as error:  # noqa: BLE001
        result, detail = "FAIL", f"{type(error).__name__}: {error}"[:500]
        lab.drop()
    return CheckOutcome(which, result, detail, time.monotonic() - started)


def _answer(listener: socket.socket, kind: str, knocks: list[str]) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            knocks.append(kind)
            connection.close()
