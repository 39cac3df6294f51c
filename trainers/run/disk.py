"""Writing a run's files: atomically, and such that they survive a power failure."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from turnwise.durable import folder_whole, sync, write_whole
from turnwise.errors import RunError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_text(path: Path, text: str) -> None:
    """Replace a file by one that is whole.

    Raises:
        RunError: it cannot be written; the old one is intact.
    """
    try:
        write_whole(path, text)
    except OSError as error:
        raise disk_error(path, error) from error


def append_line(path: Path, line: bytes) -> None:
    """Add a line to a file.

    Raises:
        RunError: it cannot be written; what stood there before is intact.
    """
    new = not path.exists()
    try:
        with open(path, "ab") as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if new:
            sync(path.parent)
    except OSError as error:
        raise disk_error(path, error) from error


def point(link: Path, target: Path) -> None:
    """Point a link at a file or folder beside it.

    Raises:
        RunError: it cannot be written.
    """
    aside = link.with_name(f".{link.name}")
    try:
        aside.unlink(missing_ok=True)
        aside.symlink_to(target.relative_to(link.parent))
        aside.replace(link)
        sync(link.parent)
    except OSError as error:
        raise disk_error(link, error) from error


@contextmanager
def written_aside(final: Path) -> Iterator[Path]:
    """An empty folder that becomes ``final``, synced to the disk, when all was written; else it is removed.

    Raises:
        RunError: the disk is full or cannot be written.
    """
    try:
        with folder_whole(final) as aside:
            yield aside
    except Exception as error:
        problem = _disk_problem(error)
        if problem is None:
            raise
        raise disk_error(final, problem) from error


def disk_error(path: Path, error: OSError) -> RunError:
    """The error for a file that cannot be written, with its remedy."""
    full = "Make room and go on with --resume; what was saved before is intact."
    remedy = full if error.errno in _FULL else "Check the path and its permissions."
    return RunError(f"{path} cannot be written: {error.strerror or error}.", remedy)


def _disk_problem(error: Exception) -> OSError | None:
    """The operating system's error, which libraries in Rust only mention in their message."""
    if isinstance(error, OSError):
        return error
    said = re.search(r"os error (\d+)", str(error))
    return OSError(int(said[1]), os.strerror(int(said[1]))) if said else None
