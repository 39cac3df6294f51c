"""Access to servers that we open: by the right host name and a token.

Every page of a browser on this machine can send requests to ports of this machine, under a name of its own that
it lets point here (DNS rebinding). So a server looks at the ``Host`` it is called by, and at a token that is
random unless one is given: ``Authorization: Bearer TOKEN``, or in the address, ``http://:TOKEN@host:port``.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from turnwise.errors import TurnwiseError

NO_TOKEN = "none"
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Door(NamedTuple):
    """A server's address and the token that it requires; "" requires none."""

    host: str
    port: int
    token: str

    @property
    def address(self) -> str:
        """With the token in it, for a client of ours."""
        within = f":{quote(self.token, safe='')}@" if self.token else ""
        return f"http://{within}{_bracketed(self.host)}:{self.port}"

    def refuses(self, headers: Mapping[str, str]) -> tuple[int, str] | None:
        """The status and the reason with which a request is turned away; None lets it in.

        Args:
            headers: the request's, whose names are found in any case.
        """
        if not self._is_called(headers.get("Host", "")):
            return 421, "This is not the address of this server."
        if self.token and not hmac.compare_digest(
            _given(headers.get("Authorization", "")), self.token.encode()
        ):
            return 401, "Give the token that the server printed: Authorization: Bearer TOKEN."
        return None

    def _is_called(self, name: str) -> bool:
        if not is_local(self.host):
            return bool(self.token)  # it may have any name; what holds is the token
        return name.lower() in {f"{known}:{self.port}" for known in (*_LOCAL_NAMES, _bracketed(self.host))}


def open_door(host: str, port: int, token: str = "") -> Door:
    """A door with the token that was asked for: a random one without ``token``, none with ``"none"``.

    Raises:
        TurnwiseError: there is no token where other machines can reach the server.
    """
    if token != NO_TOKEN:
        return Door(host, port, token or secrets.token_urlsafe(24))
    if not is_local(host):
        raise TurnwiseError(
            f"Without a token, whoever reaches {host} could use the server.",
            "Leave --token none out, or serve on 127.0.0.1.",
        )
    return Door(host, port, "")


def is_local(host: str) -> bool:
    """Return whether only this machine can reach a server that listens there.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0"), is_local("example.org")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def without_token(address: str) -> tuple[str, dict[str, str]]:
    """An address as it is connected to, and the header that carries the token that stood in it.

    >>> without_token("http://:abc@127.0.0.1:8000/retrieve")
    ('http://127.0.0.1:8000/retrieve', {'Authorization': 'Bearer abc'})
    >>> without_token("http://127.0.0.1:8000")
    ('http://127.0.0.1:8000', {})
    """
    parts = urlsplit(address)
    within, _, place = parts.netloc.rpartition("@")
    if not within:
        return address, {}
    user, _, password = within.partition(":")
    if user:
        basic = base64.b64encode(f"{unquote(user)}:{unquote(password)}".encode()).decode()
        header = f"Basic {basic}"
    else:
        header = f"Bearer {unquote(password)}"
    return parts._replace(netloc=place).geturl(), {"Authorization": header}


def _given(authorization: str) -> bytes:
    """The token of a Bearer header, or the password of a Basic one, which is what browsers make of an address."""
    scheme, _, value = authorization.strip().partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return value.strip().encode("utf-8", "surrogateescape") if scheme.lower() == "bearer" else b""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
