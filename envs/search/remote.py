"""A client for retrieval servers that speak Search-R1's ``POST /retrieve``.

``{"queries", "topk", "return_scores": true}`` → ``{"result": [[{"document", "score"}]]}``. A failed request is
tried again and then ends the episode as a fault of the machine: it never becomes an observation. An answer is read
up to 16 MiB and for 30 s. A token stands in the address, ``http://:TOKEN@host:8000``.
"""

from __future__ import annotations

import functools
import json
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from turnwise.doors import without_token
from turnwise.envs.search.corpus import Passage
from turnwise.envs.search.index import Hit
from turnwise.errors import InfraError
from turnwise.secrets import redact, resolve
from turnwise.tools.core import ToolError

_ATTEMPTS, _SECONDS, _REMEMBERED = 3, 30.0, 4096
_MOST_BYTES = 16 << 20
LONGEST_QUERY = 10_000
"""Characters; our server refuses more, so a longer query is told to the agent as its own mistake."""


class RemoteLibrary:
    """Passages that a server finds. They are known once they were found; a position is the document's id."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._passages: dict[int, Passage] = {}
        self._search = functools.lru_cache(maxsize=_REMEMBERED)(self._ask)

    def __repr__(self) -> str:
        return f"RemoteLibrary({redact(self.url)})"

    def search(self, query: str, k: int) -> Sequence[Hit]:
        if len(query) > LONGEST_QUERY:
            raise ToolError(f"The query is too long: {len(query)} characters, at most {LONGEST_QUERY}.")
        return self._search(query, k)

    def semantic(self, query: str, k: int, embedder: str) -> Sequence[Hit]:
        raise ToolError("This library cannot be searched by meaning: use search.")

    def passage(self, position: int) -> Passage | None:
        return self._passages.get(position)

    def titled(self, title: str) -> int | None:
        folded = title.strip().casefold()
        return next((at for at, p in self._passages.items() if p.title.casefold() == folded), None)

    def select(self, words: str, kind: str, since: int, until: int) -> NDArray[np.int64]:
        raise ToolError("This library can only be searched: use search.")

    def _ask(self, query: str, k: int) -> tuple[Hit, ...]:
        body = {"queries": [query], "topk": k, "return_scores": True}
        answer = retrieve(self.url, body)
        try:
            return tuple(self._hit(item) for item in answer["result"][0])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InfraError(
                f"The retrieval server {redact(self.url)} does not answer as Search-R1's: {error!r}.",
                'It must answer {"result": [[{"document": {"id", "contents"}, "score"}]]}.',
            ) from None

    def _hit(self, item: Any) -> Hit:
        passage = Passage.from_json(item["document"])
        position = int(passage.id) if passage.id.isdecimal() else zlib.crc32(passage.contents.encode())
        self._passages[position] = passage
        return Hit(position, float(item.get("score", 0.0)))


@functools.cache
def remote_library(url: str) -> RemoteLibrary:
    """The library behind a server, one per process."""
    return RemoteLibrary(url)


def retrieve(url: str, body: dict[str, Any]) -> Any:
    """Send one request to ``url``/retrieve.

    Raises:
        InfraError: the server cannot be reached, or answers with an error or no JSON.
    """
    import tenacity

    address, token = without_token(resolve(url if url.endswith("/retrieve") else f"{url}/retrieve"))
    headers = {"Content-Type": "application/json", **token}
    request = urllib.request.Request(address, json.dumps(body).encode(), headers, method="POST")

    @tenacity.retry(
        stop=tenacity.stop_after_attempt(_ATTEMPTS), wait=tenacity.wait_exponential(0.1, max=2), reraise=True,
        retry=tenacity.retry_if_exception_type((OSError, ValueError)),
    )  # fmt: skip
    def send() -> Any:
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS) as response:
                return json.loads(_read(response))
        except RecursionError:
            raise ValueError("the answer is nested too deeply") from None
        except urllib.error.HTTPError as error:
            with error:
                raise OSError(f"status {error.code}, {error.read(300).decode(errors='replace')}") from None

    try:
        return send()
    except (OSError, ValueError) as error:
        raise InfraError(
            f"The retrieval server {address} failed: {error}.",
            "Start one with `python -m turnwise.envs.search.server`, and check the address.",
        ) from None


def _read(response: Any) -> bytes:
    """A body of bounded size, within the time that one request has."""
    until = time.monotonic() + _SECONDS
    read = bytearray()
    while part := response.read1(1 << 16):
        read += part
        if len(read) > _MOST_BYTES:
            raise ValueError(f"the answer is longer than {_MOST_BYTES} bytes")
        if time.monotonic() > until:
            raise TimeoutError(f"the answer took more than {_SECONDS:g} s")
    return bytes(read)
