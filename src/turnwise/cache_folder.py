"""The folder of what is made once and can be made again: indexes, images' roots, converted models, environments of others."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from turnwise.errors import TurnwiseError


def cache_folder(*names: str) -> Path:
    """Return ``$TURNWISE_CACHE``, else ``$XDG_CACHE_HOME/turnwise``, else ``~/.cache/turnwise``, or what these names are in it.

    Who has no home to write to, as many containers' users, has a folder of their own in the temporary one.

    Raises:
        TurnwiseError: that one is somebody else's.
    """
    if named := os.environ.get("TURNWISE_CACHE"):
        return Path(named).joinpath(*names)
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnwise"
        home.mkdir(parents=True, exist_ok=True)
        if os.access(home, os.W_OK | os.X_OK):
            return home.joinpath(*names)
    except (OSError, RuntimeError):  # Path.home() raises the latter for users that the system does not know
        pass
    return _temporary().joinpath(*names)


def _temporary() -> Path:
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir(), f"turnwise-cache-{user}")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    theirs = hasattr(os, "getuid") and (found.st_uid != user or stat.S_IMODE(found.st_mode) & 0o077)
    if theirs or not stat.S_ISDIR(found.st_mode):
        raise TurnwiseError(
            f"{folder} is not a folder of this user alone.",
            "Remove it, or set TURNWISE_CACHE to a folder that you may write to.",
        )
    return folder
