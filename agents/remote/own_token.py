"""The token of an engine that was started by hand without one: a file for each port of this machine that only its user can read.

Whoever starts the engine makes it, and programs of the same user find it by the engine's address, so that neither has to be
told. Other users of this machine cannot read it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from turnwise.agents.remote.guard import is_loopback
from turnwise.cache_folder import cache_folder
from turnwise.errors import EngineError

_MOST = 4096


def token_folder() -> Path:
    """Return the folder of the files."""
    return cache_folder("engines")


def write_token(file: Path, token: str = "") -> str:
    """Write a token into a file that only this user can read; a random one if none is given.

    Raises:
        EngineError: it cannot be written.
    """
    token = token or secrets.token_hex(32)
    aside = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as whole:
            whole.write(f"{token}\n")
        aside.replace(file)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise EngineError(
            f"The engine's token cannot be written to {file}: {error.strerror or error}.",
            "Give it one of your own: --token-file.",
        ) from error
    return token


@contextlib.contextmanager
def token_of(door: socket.socket, given: str) -> Iterator[str]:
    """The file with the token of the engine at this door: the one that is given, or one that is made, and removed in the end.

    Raises:
        EngineError: it cannot be written.
    """
    if given:
        yield given
        return
    file = _file(door.getsockname()[1])
    token = write_token(file)
    try:
        yield str(file)
    finally:
        if _read(file) == token:  # else another engine has the port by now
            file.unlink(missing_ok=True)


def found_token(url: str) -> str:
    """The token of the engine of this machine at ``url``, as far as this user may know it; empty where there is none."""
    parts = urlsplit(url)
    if parts.port is None or not is_loopback(parts.hostname or ""):
        return ""
    return _read(_file(parts.port))


def _file(port: int) -> Path:
    return token_folder() / f"{socket.gethostname()}-{port}.token"


def _read(file: Path) -> str:
    """A token that nobody else could have written or read."""
    try:
        with file.open("rb") as opened:
            about = os.fstat(opened.fileno())
            if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
                return ""
            return opened.read(_MOST).decode("ascii", "replace").strip()
    except OSError:
        return ""
