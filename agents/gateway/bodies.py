"""Bodies of requests, read within bounds: of size, shape and time, and of what one session's requests hold together.

A body is text of JSON, and JSON that is small as text may be large as values, or nested deeper than whoever writes it again
can follow. So both are bounded here, at the door, and nothing behind it has to be afraid of what a client sends.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from aiohttp import web

from turnwise.agents.gateway.core import RefusedError, bad, nested_deeper
from turnwise.agents.gateway.offloading import Offloader, marks, read_json
from turnwise.tasks.core import Json

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")
"""Pattern of a half of a surrogate pair in JSON, which is no text unless the other half follows."""


class BodyLimits(NamedTuple):
    """Bounds of the bodies that requests may carry.

    Attributes:
        body: bytes of one.
        held: bytes of all requests of a session that are read or answered at a time.
        marks: brackets, braces and commas in one, and so its values.
        seconds: in which all of it must be there.
    """

    body: int = 32 << 20
    held: int = 64 << 20
    marks: int = 1_000_000
    seconds: float = 60.0


class JsonBody(NamedTuple):
    """The JSON object that a request carried, and the bytes of its text."""

    value: dict[str, Any]
    size: int


class Bodies:
    """Reads the bodies of requests that belong together, and knows what they hold.

    Attributes:
        held: bytes of the requests that are being read or answered.
        offloader: does what such a request may make long.
    """

    def __init__(self, limits: BodyLimits | None = None) -> None:
        self.limits, self.held = limits or BodyLimits(), 0
        self.offloader = Offloader()

    @asynccontextmanager
    async def whole(self, request: web.Request) -> AsyncIterator[bytearray]:
        """A request's body, which counts as held until this is left.

        Raises:
            RefusedError: it is too large, comes too slowly or breaks off, or the others hold too much.
        """
        body = bytearray()
        try:
            try:
                async with asyncio.timeout(self.limits.seconds):
                    await self._read(request, body)
            except TimeoutError:
                why = f"The request was not there within {self.limits.seconds:g} s."
                raise RefusedError(408, "request_timeout", why) from None
            except (ConnectionError, web.HTTPException, web.RequestPayloadError, ValueError) as error:
                raise bad(f"The request breaks off: {error!r:.80}") from None
            yield body
        finally:
            self.held -= len(body)

    @asynccontextmanager
    async def object_of(self, request: web.Request) -> AsyncIterator[JsonBody]:
        """The JSON object that a request's body is.

        Raises:
            RefusedError: it is none, or beyond the limits.
        """
        async with self.whole(request) as body:
            given = await self.parsed(body)
            if not isinstance(given, dict):
                raise bad("The body must be a JSON object.")
            yield JsonBody(given, len(body))

    async def parsed(self, body: bytes | bytearray) -> Json:
        """The JSON value of a body.

        Raises:
            RefusedError: as :func:`parse_json` does.
        """
        return await self.offloader.run(len(body), parse_json, body, self.limits)

    async def _read(self, request: web.Request, body: bytearray) -> None:
        most = self.limits.body
        too_large = RefusedError(413, "request_too_large", f"A request may have {most / 2**20:g} MiB.")
        if (request.content_length or 0) > most:
            raise too_large
        while part := await request.content.readany():
            body += part
            self.held += len(part)
            if len(body) > most:
                raise too_large
            if self.held > self.limits.held:
                why = f"The requests that are open hold more than {self.limits.held / 2**20:g} MiB."
                raise RefusedError(429, "too_much_at_once", why, retry_s=1.0)


def parse_json(body: bytes | bytearray, limits: BodyLimits | None = None) -> Json:
    """The JSON value of a body.

    >>> parse_json(b'{"a": [1, 2]}')
    {'a': [1, 2]}

    Raises:
        RefusedError: it is no JSON, or has too many values or too deep ones.
    """
    most = (limits or BodyLimits()).marks
    try:
        text = body.decode()
        if marks(text) > most:
            why = f"A request may have {most:,} brackets, braces and commas."
            raise RefusedError(413, "request_too_large", why)
        given = read_json(text)
        if _HALF_PAIR.search(text):
            for piece in json.JSONEncoder(ensure_ascii=False).iterencode(given):
                piece.encode()
    except (ValueError, RecursionError) as error:
        raise bad(f"The body is no JSON: {error!s:.120}") from None
    if nested_deeper(given):
        raise bad("The body is nested too deeply.")
    return given
