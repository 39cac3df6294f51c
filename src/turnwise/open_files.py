"""Files that a process may have open: many systems allow 1,024, and each episode may need a socket or the pipes of a program."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

ENOUGH = 65_536  # above which some programs that close all descriptors they might have are slow to start


class OpenFiles(NamedTuple):
    """How many are open, and how many may be; 0 where there is no limit, or the system tells none."""

    open: int = 0
    most: int = 0


def open_files() -> OpenFiles:
    """Count this process's open files, sockets and pipes."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return OpenFiles(len(os.listdir("/dev/fd")), 0 if soft == resource.RLIM_INFINITY else soft)
    return OpenFiles()


def raise_open_files() -> None:
    """Allow this process, and those that it starts, as many open files as it may allow itself, up to :data:`ENOUGH`."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= soft < ENOUGH:
            most = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
