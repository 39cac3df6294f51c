"""Control groups: the kernel's limits on a whole sandbox (memory, processes, processor), versions 1 and 2."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from turnwise.tools.sandbox.core import MIB, SandboxLimits

_TOP = Path("/sys/fs/cgroup")
_OVERHEAD = 64 * MIB  # of the supervisor and what the kernel counts for it
_NAME = "turnwise-"


class Group(NamedTuple):
    """The folders of one sandbox's control group: one in version 2, one per controller in version 1."""

    folders: tuple[Path, ...]
    memory: Path

    def join_commands(self) -> list[str]:
        """Lines of shell that put the shell itself into the group."""
        return [f"echo $$ > {folder}/cgroup.procs" for folder in self.folders]

    def remove(self) -> None:
        """Kill what is left in it and remove it."""
        for _ in range(200):
            pids = [pid for folder in self.folders for pid in _pids(folder)]
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for folder in self.folders:
                with contextlib.suppress(OSError):
                    folder.rmdir()
            if not any(folder.exists() for folder in self.folders):
                return
            time.sleep(0.005)


def available() -> bool:
    """Return whether groups with memory and process limits can be made here."""
    return os.geteuid() == 0 and _parents() is not None


def make_group(name: str, limits: SandboxLimits) -> Group:
    """A group with these limits; ``name`` is unique, and begins with the number of its maker's process."""
    parents = _parents()
    if parents is None:
        raise OSError("no control groups")
    folders = {kind: parent / f"{_NAME}{os.getpid()}-{name}" for kind, parent in parents.items()}
    for folder in dict.fromkeys(folders.values()):
        folder.mkdir(parents=True)
    memory = limits.memory + limits.disk + 2 * limits.scratch + _OVERHEAD
    quota = max(int(limits.cpus * 100_000), 1000)
    if "all" in folders:
        group = folders["all"]
        _set(group / "memory.max", memory)
        _set(group / "memory.swap.max", 0, must=False)
        _set(group / "pids.max", limits.processes + 2)
        _set(group / "cpu.max", f"{quota} 100000", must=False)
        return Group((group,), group)
    _set(folders["memory"] / "memory.limit_in_bytes", memory)
    _set(folders["memory"] / "memory.memsw.limit_in_bytes", memory, must=False)
    _set(folders["pids"] / "pids.max", limits.processes + 2)
    if "cpu" in folders:
        _set(folders["cpu"] / "cpu.cfs_period_us", 100_000, must=False)
        _set(folders["cpu"] / "cpu.cfs_quota_us", quota, must=False)
    return Group(tuple(dict.fromkeys(folders.values())), folders["memory"])


def owner_of(folder: Path) -> str:
    """The number of the process that made a group."""
    return folder.name.removeprefix(_NAME).split("-")[0]


def leftovers() -> list[Path]:
    """All groups that exist now, of whatever process."""
    parents: Iterable[Path] = set((_parents() or {}).values())
    return sorted(folder for parent in parents for folder in parent.glob(f"{_NAME}*"))


def _parents() -> dict[str, Path] | None:
    """Find the folders where groups are made: ``all`` in version 2; memory, pids and cpu in version 1."""
    if (_TOP / "cgroup.controllers").is_file():
        return _unified()
    own = _own_groups()
    found = {kind: _TOP / kind / own.get(kind, "") for kind in ("memory", "pids", "cpu")}
    usable = {kind: path for kind, path in found.items() if os.access(path, os.W_OK)}
    return usable if {"memory", "pids"} <= set(usable) else None


def _unified() -> dict[str, Path] | None:
    top = _TOP / "turnwise"
    try:
        top.mkdir(exist_ok=True)
        for folder in (_TOP, top):
            have = (folder / "cgroup.subtree_control").read_text().split()
            for kind in ("memory", "pids", "cpu"):
                if kind not in have:
                    _set(folder / "cgroup.subtree_control", f"+{kind}", must=kind != "cpu")
    except OSError:
        return None
    return {"all": top}


def _own_groups() -> dict[str, str]:
    """The group of this process by controller, so that what it starts counts with it."""
    found: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        found.update((kind, path.lstrip("/")) for kind in kinds.split(",") if kind)
    return found


def _pids(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _set(path: Path, value: object, *, must: bool = True) -> None:
    try:
        path.write_text(f"{value}")
    except OSError:
        if must:
            raise
