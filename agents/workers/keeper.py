"""The keeper of a worker process: it ends everything that the worker leaves behind, however the worker ended.

Orphans of the worker (a container's client, a browser, a daemon) become this process's children, because it is their
subreaper. It imports nothing of Turnwise: it is forked before the worker imports anything.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # of prctl (linux/prctl.h)
PATIENCE_S = 2.0
"""Seconds that orphans that end by themselves, because their pipe is closed, may take for it."""


def keep(descriptor: int) -> None:
    """Fork. The child returns and becomes the worker; the parent stays as its keeper and never returns.

    ``descriptor`` is the highest that was inherited.
    """
    parent = os.getppid()
    worker = os.fork()
    if worker == 0:
        _control(_SET_PDEATHSIG, signal.SIGKILL)
        return
    _control(_SET_CHILD_SUBREAPER, 1)
    _control(_SET_PDEATHSIG, signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda *_: _kill(worker))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getppid() != parent:  # it died before it could be informed
        _kill(worker)
    os.closerange(3, descriptor + 1)  # the worker's pipes must close with it
    status = _wait_for(worker)
    _end_orphans()
    if os.WIFSIGNALED(status):  # so that whoever waits for this process sees how the worker ended
        ended_by = os.WTERMSIG(status)
        if ended_by not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(ended_by, signal.SIG_DFL)
        os.kill(os.getpid(), ended_by)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended
        os.kill(pid, signal.SIGKILL)


def _control(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # Linux only; elsewhere orphans are not found
        ctypes.CDLL(None).prctl(option, value)


def _wait_for(worker: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == worker:
            return status


def _end_orphans() -> None:
    """Wait a moment, then kill descendants until none is left."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # none is left
            return
        if time.monotonic() > until:
            for pid in _descendants(os.getpid()):
                _kill(pid)
        time.sleep(0.02)


def _descendants(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat") as file:
            parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return sorted(found - {root})
