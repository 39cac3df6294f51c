"""Access to an engine's server: for whoever has its token, and calls it by its own name."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from turnwise.errors import EngineError

HEALTH = "/health"
"""May be asked without a token: it says nothing but that the server is up."""


def read_token(file: str | Path) -> str:
    """The token in a file; empty where no file is named.

    Raises:
        EngineError: it cannot be read, or is too short to be a secret.
    """
    if not file:
        return ""
    try:
        token = Path(file).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"The token file {file} cannot be read: {error}.", _MAKE) from error
    if len(token) < 16 or not token.isascii() or not token.isprintable():
        raise EngineError(f"The token in {file} is no secret of 16 or more ASCII characters.", _MAKE)
    return token


_MAKE = "Make one: `(umask 077; openssl rand -hex 32 > engine.token)`."


def check_exposure(host: str, token: str) -> None:
    """Refuse to listen beyond this machine without a token.

    Raises:
        EngineError: the address is not loopback, and there is no token.
    """
    if token or is_loopback(host):
        return
    raise EngineError(
        f"An engine that listens on {host} would answer, and take weights from, anyone.",
        "Give it --token-file, and the same file to whoever uses it.",
    )


def is_loopback(host: str) -> bool:
    """Return whether an address is this machine's own.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Refusal(NamedTuple):
    """The status with which a request is turned away, and why."""

    status: int
    why: str


def refusal(path: str, headers: Mapping[str, str], token: str, host: str) -> Refusal | None:
    """Why a request is refused; None if it is not.

    Pages in a browser on this machine can reach loopback too, under a name of their own that they let point here: they send
    their origin, where none is expected, or another name in ``Host``.

    Args:
        path: that is asked for.
        headers: of the request; their names are in lower case.
        token: that callers must have; with an empty one nobody gets in.
        host: the address that the server listens on. One beyond this machine may be called by any name.
    """
    if is_loopback(host) and not is_loopback(_name_in(headers.get("host", ""))):
        return Refusal(421, f"This server is called {host} and nothing else.")
    if "origin" in headers:
        return Refusal(401, "Requests from web pages are refused.")
    if path == HEALTH:
        return None
    said = headers.get("authorization", "")
    if token and hmac.compare_digest(said.encode("utf-8", "replace"), f"Bearer {token}".encode()):
        return None
    return Refusal(401, "The token is missing or wrong.")


def _name_in(host: str) -> str:
    """The name in a ``Host`` header, without the port: behind a tunnel it is another one."""
    name, bracket, _ = host.rpartition("]")
    return name.removeprefix("[") if bracket else host.partition(":")[0].lower()
