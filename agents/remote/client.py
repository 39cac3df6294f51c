"""One engine's server, as its users see it: calls that steer it, and answers that are streamed from it."""

from __future__ import annotations

import http.client
import json
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import aiohttp
import pydantic

from turnwise.agents.core import Completion, Kv
from turnwise.agents.remote.answer import AnswerStream, Job, SampledTokens
from turnwise.agents.remote.own_token import found_token
from turnwise.agents.remote.protocol import (
    FACTS,
    GENERATE,
    RUN,
    AnswerPiece,
    EngineFacts,
    GenerateBody,
    SamplingBody,
)
from turnwise.errors import EngineError

FACTS_S = 5.0
"""Seconds that a healthy server may take to say how it is."""
CONTROL_S = 600.0
"""Seconds that steering may take: weights are on their way."""
CONNECT_S = 10.0
RESETS = 3
"""Times that a request is sent at most, with the same id, where the connection was closed before anything came."""
_MOST_LINE = 1 << 22


class Address(NamedTuple):
    """The address of a server, and the token that it asks for; without one, that of this user's engine at this port is
    looked up."""

    url: str
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        token = self.token or found_token(self.url)  # each time: the engine may be started later, or anew
        return {"Authorization": f"Bearer {token}"} if token else {}


def parse_url(url: str) -> str:
    """An engine's URL without its trailing slash.

    Raises:
        EngineError: it is none.
    """
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        misfit = "its port is 0" if parts.port == 0 else ""
    except ValueError as error:  # a port beyond 65535, a bracket without its end, a name with an empty part
        raise _no_address(url, str(error)) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or "@" in parts.netloc:
        misfit = "it is not of this form"
    if misfit:
        raise _no_address(url, misfit)
    return url.rstrip("/")


def _no_address(url: str, why: str) -> EngineError:
    return EngineError(f"{url!r} is no engine's URL: {why}.", "Write http://HOST:PORT.")


class Delivery(Protocol):
    """Weights that one engine is to have, and how they get there."""

    @property
    def whole(self) -> str:
        """The checksum of what the engine then has."""
        ...

    def send(self, server: RemoteServer, version: int, *, seconds: float) -> None:
        """Bring them into the engine, which samples nothing meanwhile.

        Raises:
            Unreachable: the engine does not answer.
            EngineError: it does not take them.
        """
        ...


class Unreachable(EngineError):
    """No answer came from an engine's server, or one of something else: it is dead, wedged or cut off, and may be back."""


class WrongTokenError(EngineError):
    """An engine's server is there and wants another token; asking again does not help until somebody changes something."""


class RemoteServer:
    """A server, what is known of it, and what it is doing for us.

    Args:
        address: where it listens.
        answer_s: what it may take to answer what costs it little; weights on their way have a limit of their own.
    """

    def __init__(self, address: Address, answer_s: float = FACTS_S) -> None:
        self.address, self.answer_s = address, answer_s
        self.facts: EngineFacts | None = None
        self.version = -1  # of the weights that we know it to have
        self.run = ""  # in whose name it is steered: the holder of its lease
        self.readings: set[AnswerStream] = set()  # the answers that are on their way from it
        self.heard_at = time.monotonic()  # when it last gave a sign of life while it had something to do
        self.updating = False
        self.stall_s = 0.0  # how long it sampled nothing for the newest weights
        self.tokens_heard = 0  # those of answers that were lost as well
        self._publishing = threading.Lock()

    @property
    def name(self) -> str:
        return urlsplit(self.address.url).netloc

    @property
    def in_flight(self) -> int:
        return len(self.readings)

    @property
    def idle(self) -> bool:
        """True if it has nothing in hand for us."""
        return not self.readings and not self.updating

    @property
    def silence(self) -> float:
        """For how many seconds nothing has come of what was asked; 0 where nothing is."""
        return time.monotonic() - self.heard_at if self.readings and not self.updating else 0.0

    # --- steering: blocks, from any thread -----------------------------------------------------

    def call(self, method: str, path: str, body: object = None, *, seconds: float | None = None) -> bytes:
        """Ask the server and wait for its answer, for ``answer_s`` unless ``seconds`` says otherwise.

        Raises:
            Unreachable: no answer came.
            EngineError: it refuses.
        """
        parts = urlsplit(self.address.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        assert parts.hostname is not None
        connection = kind(parts.hostname, parts.port, timeout=self.answer_s if seconds is None else seconds)
        data = json.dumps(body).encode() if body is not None else None
        headers = {**self.address.headers, **({"Content-Type": "application/json"} if data else {})}
        headers |= {RUN: self.run} if self.run else {}
        try:
            connection.request(method, f"{parts.path}{path}", data, headers)
            response = connection.getresponse()
            said = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(
                f"The engine at {self.name} does not answer {path}: {type(error).__name__} {error}.",
                "Is it running (`turnwise serve-engine`), and is its address right?",
            ) from error
        finally:
            connection.close()
        if response.status >= 400:
            raise self.refused(path, response.status, said)
        return said

    def refused(self, path: str, status: int, said: bytes) -> EngineError:
        """Return the error to raise where the server refuses."""
        why = _message(said)
        if status in (401, 403):
            return WrongTokenError(
                f"The engine at {self.name} refuses {path}: {why}",
                "Give the token_file that it was started with.",
            )
        if status == 404:
            return EngineError(
                f"The server at {self.name} does not know {path}.",
                "Start engines by `turnwise serve-engine`.",
            )
        return EngineError(f"The engine at {self.name} refuses {path} ({status}): {why}", "Look at its log.")

    def foreign(self, path: str, error: pydantic.ValidationError) -> Unreachable:
        """Return the error to raise where something answers that is no engine."""
        return Unreachable(
            f"What answers {path} at {self.name} is no engine of this version: {error.errors()[0]['msg']}.",
            "Has something else taken its port? Start engines by the same version of `turnwise serve-engine`.",
        )

    def look(self) -> EngineFacts:
        """Ask the server what and how it is.

        Raises:
            EngineError: it does not answer, or is no engine of ours.
        """
        said = self.call("GET", FACTS, seconds=FACTS_S)
        try:
            self.facts = EngineFacts.model_validate_json(said)
        except pydantic.ValidationError as error:
            raise EngineError(
                f"The server at {self.name} is no engine of this version: {error.errors()[0]['msg']}.",
                "Start engines by the same version of `turnwise serve-engine`.",
            ) from error
        return self.facts

    def publish(self, weights: Delivery, version: int, kv: Kv, *, seconds: float = CONTROL_S) -> None:
        """Bring weights into the engine, between two tokens of what it samples, and see that it has them.

        Fetching and loading may take ``seconds``; whatever else it is asked it answers in ``answer_s``, or it is wedged.

        Raises:
            EngineError: it does not have them; until it does, it must serve nobody.
        """
        if not self._publishing.acquire(blocking=False):
            raise EngineError(
                f"The engine at {self.name} is given weights already.", "Try again when it has them."
            )
        self.updating = True
        for reading in tuple(self.readings):
            reading.update_begins()
        began = time.monotonic()
        try:
            cache = "false" if kv == "keep" else "true"
            self.call("POST", f"/pause?mode=keep&clear_cache={cache}")
            weights.send(self, version, seconds=seconds)
            self.attest(weights.whole, version)
            self.version = version
            self.call("POST", "/resume")
            self.stall_s = time.monotonic() - began
        finally:
            self.heard_at = time.monotonic()
            self.updating = False
            self._publishing.release()

    def attest(self, checksum: str, version: int) -> None:
        """Compare what the engine says that it computes with what was published.

        Raises:
            EngineError: it has other weights, or half of them.
        """
        weights = self.look().weights
        if weights.settled and weights.version == str(version) and weights.checksum == checksum:
            return
        half = "half of " if not weights.settled else ""
        raise EngineError(
            f"The engine at {self.name} has {half}weights {weights.version} ({weights.checksum[:8] or 'its own'}), "
            f"and not weights {version} ({checksum[:8]}).",
            "Nothing was sampled with them. It is given them again.",
        )

    def score(self, sequence: Sequence[int], *, seconds: float | None = None) -> tuple[float, ...]:
        """log p(token | all before it) at temperature 1, for every token but the first.

        Raises:
            Unreachable: no answer came, or none of an engine.
            EngineError: the server cannot say.
        """
        sampling = SamplingBody(temperature=0.0, top_p=1.0, max_tokens=1, prompt_logprobs=0)
        body = GenerateBody(
            request_id=f"score-{secrets.token_hex(8)}",
            token_ids=list(sequence),
            sampling_params=sampling,
            stream=False,
        )
        said = self.call("POST", GENERATE, body.model_dump(exclude_none=True), seconds=seconds)
        try:
            piece = AnswerPiece.model_validate_json(said)
        except pydantic.ValidationError as error:
            raise self.foreign(GENERATE, error) from error
        entries = piece.prompt_logprobs or []
        found = [(entry or {}).get(token) for entry, token in zip(entries[1:], sequence[1:], strict=False)]
        scores = tuple(one.logprob for one in found if one is not None)
        if len(entries) != len(sequence) or len(scores) != len(sequence) - 1:
            raise EngineError(
                f"The engine at {self.name} scored {len(scores)} of {len(sequence) - 1} tokens.",
                "Look at its log.",
            )
        return scores

    # --- sampling: in the loop of the session --------------------------------------------------

    def begin(self, job: Job, kept: SampledTokens) -> AnswerStream:
        """Begin to read an answer, of which ``kept`` is there already; :meth:`sample` goes on."""
        assert self.facts is not None
        body, kept = job.ask(kept, version=self.version, resumes=self.facts.resumes)
        sizes = [size for size in (job.vocabulary, self.facts.vocabulary) if size]
        reading = AnswerStream(job, kept, self.version, body, min(sizes))
        if not self.readings:
            self.heard_at = time.monotonic()
        self.readings.add(reading)
        if self.updating:  # looked at after it was added: an update that begins now has seen it
            reading.update_begins()
        return reading

    async def sample(self, session: aiohttp.ClientSession, reading: AnswerStream) -> Completion:
        """Sample the answer.

        Raises:
            Lost: no answer came, or what came is none.
            EngineError: the request itself is refused; no other engine would take it.
        """
        data = reading.body.model_dump_json(exclude_none=True).encode()
        try:
            return await self._send(session, data, reading)
        finally:
            self.readings.discard(reading)

    async def _send(self, session: aiohttp.ClientSession, data: bytes, reading: AnswerStream) -> Completion:
        for attempt in range(RESETS):
            try:
                return await self._hear(session, data, reading)
            except (aiohttp.ClientConnectorError, TimeoutError) as error:
                raise reading.lost("dead", f"{self.name} cannot be reached: {error}") from error
            except (aiohttp.ClientError, OSError) as error:
                # Servers close connections that are idle, perhaps just now: the request is sent again under its id.
                if reading.ids or attempt + 1 == RESETS:
                    said = f"{type(error).__name__} {error} after {len(reading.ids)} tokens"
                    raise reading.lost("dead", f"{self.name} broke off: {said}") from error
        raise AssertionError("unreachable")

    async def _hear(self, session: aiohttp.ClientSession, data: bytes, reading: AnswerStream) -> Completion:
        headers = {**self.address.headers, "Content-Type": "application/json"}
        async with session.post(f"{self.address.url}{GENERATE}", data=data, headers=headers) as response:
            if response.status != 200:
                said = await response.read()
                if response.status < 500 and response.status not in (401, 403, 404, 408, 429):
                    raise self.refused(GENERATE, response.status, said)
                raise reading.lost("dead", f"{self.name} answers {response.status}: {_message(said)}")
            events = _Events()
            async for chunk, _ in response.content.iter_chunks():
                self.heard_at = time.monotonic()
                for event in events.of(chunk):
                    if event == b"[DONE]":
                        return reading.completion()
                    self._take(event, reading)
        raise reading.lost("truncated", f"{self.name} ended after {len(reading.ids)} tokens")

    def _take(self, line: bytes, reading: AnswerStream) -> None:
        try:
            piece = AnswerPiece.model_validate_json(line)
        except pydantic.ValidationError as error:
            raise reading.lost("truncated", f"{self.name} says {line[:80]!r}") from error
        if not piece.choices:
            raise reading.lost("dead", f"{self.name}: {_message(line)}")
        for choice in piece.choices:
            self.tokens_heard += len(choice.token_ids or ())
            reading.take(choice)


class _Events:
    """Cuts a stream of bytes into the events in it. No asynchronous generator, which a cancelled reader would leave open."""

    def __init__(self) -> None:
        self._rest = b""

    def of(self, data: bytes) -> Iterator[bytes]:
        """The events that are whole now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _MOST_LINE:
            raise aiohttp.ClientPayloadError("a line without end")
        for line in lines:
            if line.startswith(b"data: "):
                yield line[6:].strip()


def _message(said: bytes) -> str:
    """Read the message in a server's refusal."""
    try:
        found = json.loads(said)
        error = found.get("error", found.get("detail", found)) if isinstance(found, dict) else found
        return str(error.get("message", error) if isinstance(error, dict) else error)[:300]
    except ValueError:
        return said[:300].decode("utf-8", "replace")


def new_session() -> aiohttp.ClientSession:
    """Connections for any number of requests at a time; none is kept idle for as long as servers keep them."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=3.0)
    timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_S)
    return aiohttp.ClientSession(connector=connector, timeout=timeout, read_bufsize=1 << 20)
