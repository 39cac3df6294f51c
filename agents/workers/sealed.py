"""Proof of two sides on a network to each other that they have the same token, before either reads what the other says.

The token itself is never sent. Each side sends a number that nobody has used before, and what only the token makes of both
numbers; the keys that seal all further frames come of them too, so that nobody on the way can change a frame, add one or
leave one out without being found out. What is said can be read on the way.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import time

from turnwise.agents.workers.wire import Connection, Seal
from turnwise.errors import RunError

GREETING = b"turnwise-workers-1\n"
PROVE_S = 10.0
"""Seconds that both sides together may take to prove themselves."""
_SIZE, _YES = 32, b"+"


class HostRefusedError(RunError):
    """Two sides do not belong together; asking again does not help until somebody changes something."""


def prove_to_caller(end: socket.socket, token: str) -> Connection | None:
    """The connection to a caller that has the token; None for one that has not.

    Raises:
        OSError: it is gone, or takes too long.
    """
    until, ours = time.monotonic() + PROVE_S, secrets.token_bytes(_SIZE)
    _send(end, GREETING + ours, until)
    said = _read(end, 2 * _SIZE, until)
    theirs, proof = said[:_SIZE], said[_SIZE:]
    if not hmac.compare_digest(proof, _made(token, b"caller", ours + theirs)):
        return None
    _send(end, _YES + _made(token, b"host", ours + theirs), until)
    host, caller = _keys(token, ours + theirs)
    return _opened(end, Seal(host, caller))


def prove_to_host(end: socket.socket, token: str, place: str) -> Connection:
    """The connection to a host that has the token.

    Raises:
        HostRefusedError: it has another token, or is no host of this kind.
        OSError: it is gone, or takes too long.
    """
    until, ours = time.monotonic() + PROVE_S, secrets.token_bytes(_SIZE)
    greeting = _read(end, len(GREETING) + _SIZE, until)
    if not greeting.startswith(GREETING):
        raise HostRefusedError(
            f"What listens at {place} is no `turnwise serve-workers` of this version.", "See to the address."
        )
    theirs = greeting[len(GREETING) :]
    _send(end, ours + _made(token, b"caller", theirs + ours), until)
    try:
        answer = _read(end, len(_YES) + _SIZE, until)
    except ConnectionError:
        answer = b""
    if not hmac.compare_digest(answer, _YES + _made(token, b"host", theirs + ours)):
        raise HostRefusedError(f"{place} has another token.", "Give both the same --token-file.")
    host, caller = _keys(token, theirs + ours)
    return _opened(end, Seal(caller, host))


def _opened(end: socket.socket, seal: Seal) -> Connection:
    end.settimeout(None)
    return Connection(end, seal)


def _keys(token: str, numbers: bytes) -> tuple[bytes, bytes]:
    return _made(token, b"host sends", numbers), _made(token, b"caller sends", numbers)


def _made(token: str, what: bytes, numbers: bytes) -> bytes:
    return hmac.digest(token.encode(), what + b"\0" + numbers, "sha256")


def _send(end: socket.socket, data: bytes, until: float) -> None:
    end.settimeout(_left(until))
    end.sendall(data)


def _read(end: socket.socket, size: int, until: float) -> bytes:
    """Exactly so many bytes, and none of what comes after."""
    data = b""
    while len(data) < size:
        end.settimeout(_left(until))
        more = end.recv(size - len(data))
        if not more:
            raise ConnectionError("it hung up")
        data += more
    return data


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"it took more than {PROVE_S:g} s to prove itself")
    return left


def keep_alive(end: socket.socket) -> None:
    """Have a side that is gone without a word be missed within half a minute, and small frames not wait."""
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", 10),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", 30_000),
    ):
        if hasattr(socket, name):  # of Linux
            end.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
