"""Files that survive a power cut: written aside, synced, renamed, and the folder synced too."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock, Timeout

from turnwise.errors import RunError

LOCK = ".lock"
"""The file in a folder by which a process holds it."""


@contextmanager
def hold_folder(path: Path, does: str, unwritable: Callable[[Path, OSError], RunError]) -> Iterator[None]:
    """Make a folder and be the only process that writes there.

    Args:
        path: the folder.
        does: what another process may be doing there, for the message: "trains".
        unwritable: the error for a folder that cannot be made.

    Raises:
        RunError: another process holds it, or it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / LOCK)
        lock.acquire(timeout=0)
    except Timeout:
        raise RunError(
            f"Another process {does} in {path}.", "Wait for it, or choose another --out."
        ) from None
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        yield
    finally:
        lock.release()


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file by one that is whole and on the disk; readers meet the old one or the new one.

    Raises:
        OSError: it cannot be written; the old one is intact.
    """
    with written_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """A file to write to that replaces ``path`` when it is whole and on the disk, and is gone if that fails.

    Raises:
        OSError: it cannot be written; the old one is intact.
    """
    aside = path.with_name(f"{path.name}.new")
    try:
        with aside.open("wb") as file:
            yield file
        sync(aside)
        aside.replace(path)
        sync(path.parent)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def folder_whole(final: Path) -> Iterator[Path]:
    """An empty folder that becomes ``final``, synced to the disk, when all was written; else it is removed.

    For one process at a time: whatever others left half written beside it is removed.
    """
    folder = final.parent
    aside = folder / f".writing-{final.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(".writing-*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        aside.mkdir()
        yield aside
        for file in (*aside.rglob("*"), aside):
            sync(file)
        shutil.rmtree(final, ignore_errors=True)
        os.rename(aside, final)
        sync(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def sync(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
