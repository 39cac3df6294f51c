"""A user of its own for every sandbox: what the kernel counts by user (inotify, pending signals) counts by sandbox.

Numbers come from a range that no distribution gives away. A number is taken by locking a file of its name, so that
processes do not collide, and the kernel itself frees what a dead process held.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from pathlib import Path
from random import SystemRandom

from turnwise.tools.sandbox.core import SandboxError

FIRST, COUNT = 2_000_000_000, 65_536


class Uid:
    """A number that is taken until :meth:`release`, or until this process ends."""

    def __init__(self, number: int, path: Path, lock: int) -> None:
        self.number, self._path, self._lock = number, path, lock

    def release(self) -> None:
        """Give the number back. May be called twice."""
        if self._lock >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._lock)
            self._lock = -1


def take_uid() -> Uid:
    """A number that no other sandbox of this machine has.

    Raises:
        SandboxError: all are taken, or their locks cannot be made.
    """
    folder = _folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        begin = SystemRandom().randrange(COUNT)  # not the lowest: what had it last may still be dying
        for offset in range(COUNT):
            number = FIRST + (begin + offset) % COUNT
            if (lock := _locked(folder / str(number))) is not None:
                return Uid(number, folder / str(number), lock)
    except OSError as error:
        raise SandboxError(
            f"Users of sandboxes cannot be noted in {folder}: {error.strerror}.", f"Make {folder} writable."
        ) from None
    raise SandboxError(f"All {COUNT} users of sandboxes are taken.", "Close some sandboxes.")


def forget_unheld() -> int:
    """Remove the files of dead processes' numbers; how many there were. They do no harm but take a little room."""
    count = 0
    with contextlib.suppress(OSError):
        for path in list(_folder().iterdir()):
            if (lock := _locked(path)) is not None:
                Uid(0, path, lock).release()
                count += 1
    return count


def _folder() -> Path:
    if os.geteuid() == 0:
        return Path("/run/turnwise-uids")
    return Path(tempfile.gettempdir(), f"turnwise-uids-{os.geteuid()}")


def _locked(path: Path) -> int | None:
    """A lock on the file of this name, or None where another process has it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(lock).st_ino == os.stat(path).st_ino:  # else it was removed between the two
            return lock
    except OSError:
        pass
    os.close(lock)
    return None
