"""Owner marks on processes and folders, by which the leftovers of a dead process are found (see ``reap``)."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "TURNWISE_OWNER"
"""In the environment of servers and browsers that a process starts: whose they are."""
KINDS = ("process", "web", "mcp", "world", "door")
"""Kinds of folders: of process sandboxes, of applications behind a browser, of MCP servers, of worlds of others, of sockets that sandboxes reach."""


def mark() -> dict[str, str]:
    """Variables that make a process that is started now ours."""
    return {VARIABLE: _own_name(os.getpid())}


@functools.lru_cache(maxsize=1)
def _own_name(pid: int) -> str:
    """The name of this process, which stays; a fork of it has another number."""
    return name_of(pid)


def name_of(pid: int) -> str:
    """A process by its number and when it was born, since numbers are used again."""
    return f"{pid}-{born(pid)}"


def born(pid: int) -> str:
    """When a process started, in ticks since the machine did; empty where there is none, or it is dead."""
    with contextlib.suppress(OSError, IndexError):
        state, *rest = Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
        return "" if state in "ZX" else rest[18]
    return ""


def lives(name: str) -> bool:
    """Return whether the process of this name (``pid-born``, or only its number) lives."""
    pid, _, when = name.partition("-")
    now = born(int(pid)) if pid.isdigit() else ""
    return bool(now) and when in ("", now)


def make_folder(kind: str) -> Path:
    """A new temporary folder of this process's."""
    assert kind in KINDS, kind
    return Path(tempfile.mkdtemp(prefix=f"turnwise-{kind}-{os.getpid()}-"))


def folders(pid: int | None = None) -> dict[Path, str]:
    """The temporary folders of a process (of all), with their owners' numbers."""
    found: dict[Path, str] = {}
    for kind in KINDS:
        for path in Path(tempfile.gettempdir()).glob(f"turnwise-{kind}-{'*' if pid is None else pid}-*"):
            owner = path.name.split("-")[2]
            if owner.isdigit():
                found[path] = owner
    return found


def remove_folder(base: Path) -> None:
    """Remove a folder, also where what ran in it locked parts of it."""
    for here, names, _ in os.walk(base):
        for name in names:
            path = os.path.join(here, name)
            with contextlib.suppress(OSError):
                if not os.path.islink(path):
                    os.chmod(path, 0o700)
    shutil.rmtree(base, ignore_errors=True)
