"""Cleans up after processes that died without doing so: sandboxes, browsers, servers, groups, folders, containers.

Most of it dies with its owner by itself, because its end of a pipe or a socket closes; this is for what did not, and
for what the kernel keeps (control groups, folders).
"""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from turnwise.errors import TurnwiseError
from turnwise.registry import components
from turnwise.tools import owner
from turnwise.tools.sandbox import cgroups, uids
from turnwise.tools.sandbox.core import Backend
from turnwise.tools.sandbox.registry import get_backend

_TOLD = re.compile(rb'"owner": (\d+),')  # what supervisors are sent, on their command line
_PROFILE = "--user-data-dir="
_PATIENCE = 10.0  # seconds that the kernel may take to end what was killed


class _Found(NamedTuple):
    """A process that belongs to another: its owner's name is ``pid-born``, or only a number."""

    process: psutil.Process
    owner: str


def reap(pid: int) -> list[str]:
    """Remove everything that belonged to a dead process, and say what was removed.

    For whoever kills a process that may have held sandboxes, browsers or servers: call it after the kill. What belongs
    to a process that lives (also one that has the number by now) is left alone.
    """
    return _reap(pid, containers=True)


def reap_all(*, containers: bool = True) -> list[str]:
    """The same for all dead processes of this machine. Who starts things does it first, so that nothing piles up."""
    return _reap(None, containers=containers)


@functools.cache
def reap_once() -> None:
    """:func:`reap_all` without containers, the first time in a process."""
    reap_all(containers=False)


def _reap(pid: int | None, *, containers: bool) -> list[str]:
    removed = _end([found.process for found in _processes(pid) if not owner.lives(found.owner)])
    for group in cgroups.leftovers():
        number = cgroups.owner_of(group)
        if number.isdigit() and pid in (None, int(number)) and not owner.lives(number):
            cgroups.Group((group,), group).remove()
            removed.append(f"control group {group}")
    for folder, number in owner.folders(pid).items():
        if not owner.lives(number):
            owner.remove_folder(folder)
            removed.append(f"folder {folder}")
    if containers:
        removed += _containers(pid)
    uids.forget_unheld()
    return removed


def _processes(pid: int | None) -> Iterator[_Found]:
    """Find the processes that belong to a process (to any)."""
    for process in psutil.process_iter():
        name = _owner_of(process)
        if name and pid in (None, int(name.partition("-")[0])):
            yield _Found(process, name)


def _owner_of(process: psutil.Process) -> str:
    """By its environment, or by what a supervisor was sent; empty where it is nobody's."""
    home = Path("/proc", str(process.pid))
    with contextlib.suppress(OSError):
        if told := _TOLD.search((home / "cmdline").read_bytes()):
            return told[1].decode()
        for word in (home / "environ").read_bytes().split(b"\0"):
            if word.startswith(f"{owner.VARIABLE}=".encode()):
                name = word.partition(b"=")[2].decode("ascii", "replace")
                return name if name.partition("-")[0].isdigit() else ""
    return ""


def _end(processes: list[psutil.Process]) -> list[str]:
    """Kill processes, what they started and a browser's driver; remove browsers' profiles."""
    doomed: dict[int, psutil.Process] = {}
    profiles: set[Path] = set()
    removed: list[str] = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            for one in (process, *process.children(recursive=True), *_driver(process)):
                doomed[one.pid] = one
            profiles |= {Path(word.removeprefix(_PROFILE)) for word in process.cmdline() if _PROFILE in word}
    for one in doomed.values():
        with contextlib.suppress(psutil.Error):
            told = f"process {one.pid} ({one.name()})"
            one.kill()
            removed.append(told)
    psutil.wait_procs(list(doomed.values()), timeout=_PATIENCE)
    for profile in profiles:
        ours = profile.parent == Path(tempfile.gettempdir()) and profile.name.startswith("playwright_")
        if ours and profile.is_dir():
            shutil.rmtree(profile, ignore_errors=True)
            removed.append(f"folder {profile}")
    return removed


def _driver(process: psutil.Process) -> list[psutil.Process]:
    """Playwright's own process above a browser: it has no mark."""
    parent = process.parent()
    return [parent] if parent is not None and "run-driver" in parent.cmdline() else []


def _containers(pid: int | None) -> list[str]:
    """Remove what backends keep outside of this machine's processes, of those that keep anything there."""
    removed: list[str] = []
    for entry in components("sandbox"):
        if entry.target.sweep is Backend.sweep:
            continue
        with contextlib.suppress(
            TurnwiseError, OSError
        ):  # it does not answer: it is swept when it does again
            removed += [f"container {name}" for name in get_backend(entry.name).sweep(pid)]
    return removed
