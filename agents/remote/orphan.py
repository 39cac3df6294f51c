"""Servers that end with whoever started them, and leave nothing behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of prctl (linux/prctl.h)
PATIENCE_S = 5.0
"""Seconds that a program that was told to end, and processes that it left behind, may take to end by themselves."""

_LOOK_S = 0.5  # how often a program is looked at that was told to end


def end_with_parent(by: signal.Signals = signal.SIGTERM) -> None:
    """Have this process told to end when its parent ends, or killed (SIGKILL). Linux only."""
    parent = os.getppid()
    _control(_SET_PDEATHSIG, by)
    if os.getppid() != parent:  # it ended before it could be informed
        os.kill(os.getpid(), by)


def stand_over(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a program until it ends or this process is told to; then end all that it has started. Returns its exit code.

    The program calls :func:`end_with_parent` itself, so that it ends even where this process is killed (SIGKILL).
    """
    _control(_SET_CHILD_SUBREAPER, 1)
    program = subprocess.Popen(command, env={**os.environ, **variables}, start_new_session=True)
    until = float("inf")

    def told(*_: object) -> None:
        nonlocal until
        until = min(until, time.monotonic() + PATIENCE_S)
        program.terminate()

    before = {name: signal.signal(name, told) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        while (code := program.poll()) is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(_LOOK_S)
            if time.monotonic() > until:
                program.kill()
    finally:
        _end_descendants()
        for name, handler in before.items():
            signal.signal(name, handler)
    return 0 if code == -signal.SIGTERM or until < float("inf") else code


def _control(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value)


def _end_descendants() -> None:
    """Wait for orphans to end, then kill those that are left."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if time.monotonic() > until:
            for pid in descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def descendants(root: int) -> list[int]:
    """The numbers of all processes that this one started, and that those did."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return sorted(found - {root})
