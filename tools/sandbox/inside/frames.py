"""The supervisor's settings, its frames, and how it ends everything. Part of the supervisor (see supervisor.py).

A frame, both ways: length of the header (4 bytes, big-endian), header (JSON), as many bytes as its "bytes" says.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import struct
import time

FOLDERS: dict[str, str] = {}  # work, tmp, shm → where they are
SETTINGS: dict = {}
CHUNK = 1 << 16


class Refused(Exception):
    """A file operation that cannot be done; the text is for the model."""


def alone() -> bool:
    """Return whether all processes that it can signal are the sandbox's."""
    return os.getpid() == 1 and SETTINGS["isolated"]


def resolve(path: str) -> str:
    """A path as the sandbox sees it; where nothing else keeps it in, it must not lead out of the folders."""
    full = os.path.join(FOLDERS["work"], path)
    if SETTINGS["isolated"]:
        return full
    real = os.path.realpath(full)
    if not any(real == home or real.startswith(home + "/") for home in FOLDERS.values()):
        raise Refused(f"{path[:200]}: outside of the working folder")
    return (
        os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        if real != full
        else full
    )


def receive() -> tuple:
    (length,) = struct.unpack(">I", read_exactly(4))
    header = json.loads(read_exactly(length))
    return header, read_exactly(header.get("bytes", 0))


def read_exactly(count: int) -> bytes:
    parts = []
    while count:
        part = os.read(0, min(count, 1 << 20))
        if not part:
            end()
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def answer(header: dict, payload: bytes = b"") -> None:
    text = json.dumps({**header, "bytes": len(payload)}).encode()
    for part in (struct.pack(">I", len(text)) + text, payload):
        view = memoryview(part)
        while view:
            view = view[os.write(1, view) :]


def end() -> None:
    kill_all(None)
    os._exit(0)


def kill_all(keep_waiting_for: int | None) -> None:
    """Kill every process of the sandbox but this one, and bury them (save the one that is waited for)."""
    if alone():
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # atomic: a fork bomb cannot outrun it
    else:
        for _ in range(100):
            family = descendants(os.getpid())
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not family:
                break
            if keep_waiting_for is None:
                bury()
            else:
                time.sleep(0.001)
                if set(family) == {keep_waiting_for}:
                    break
    if keep_waiting_for is None:
        bury()


def bury() -> None:
    """Wait for all children that are dying."""
    deadline = time.monotonic() + 5
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.0005)


def descendants(of: int) -> list:
    """Living processes below one, by /proc."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rsplit(")", 1)[1].split()[:2]
                if state != "Z":
                    parents[int(name)] = int(parent)
    found, frontier = [], {of}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found += frontier
    return found
