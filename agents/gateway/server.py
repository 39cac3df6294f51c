"""The gateway's HTTP server: the three APIs, and the tools of sessions that have an environment.

Every request belongs to a session: by the address, ``/sessions/ID/v1/…``, and by the key, ``Authorization: Bearer KEY`` or
``x-api-key: KEY``, which is the session's own; ``/v1/…`` finds the session by the key alone. Whoever has no key of a
session learns nothing of it, not even whether there is one.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
import logging
import math
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from turnwise.agents.gateway.actions import World, carry_out
from turnwise.agents.gateway.bodies import Bodies, JsonBody
from turnwise.agents.gateway.chat import CHAT
from turnwise.agents.gateway.core import (
    Answered,
    Api,
    ChatRequest,
    RefusedError,
    StreamEvent,
    bad,
    write_json,
)
from turnwise.agents.gateway.mcp import McpSession, said
from turnwise.agents.gateway.messages import MESSAGES
from turnwise.agents.gateway.responses import RESPONSES
from turnwise.agents.gateway.sampling import sampled_by
from turnwise.agents.gateway.sessions import AgentSession
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool

APIS = (CHAT, RESPONSES, MESSAGES)
WAITING_S = 3.0
"""Seconds between the signs of life of a stream."""
_BATCH = 1 << 16
_http = logging.getLogger(f"{__name__}.http")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Seat:
    """A session in a server: who it is, the environment that it may act in, and what its requests may carry."""

    session: AgentSession
    world: World | None = None
    tools: Callable[[], tuple[Tool, ...]] = tuple
    name: str = field(default_factory=lambda: secrets.token_hex(8))
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    bodies: Bodies = field(default_factory=Bodies)


class GatewayServer:
    """Serves sessions; :meth:`start` and :meth:`close` belong to one event loop.

    Args:
        model: the name under which the policy is listed.
    """

    def __init__(self, model: str = "policy") -> None:
        self.model = model
        self.seats: dict[str, Seat] = {}
        self.app = web.Application()
        for prefix in ("", "/sessions/{session}"):
            for api in APIS:
                self.app.router.add_post(prefix + api.path, self._of(api))
            self.app.router.add_post(f"{prefix}{MESSAGES.path}/count_tokens", self._count)
            self.app.router.add_get(f"{prefix}/v1/models", self._models)
            self.app.router.add_route("*", prefix + "/v1/{rest:.*}", self._unknown)
        self.app.router.add_route("*", "/sessions/{session}/mcp", self._mcp)
        self.app.router.add_get("/sessions/{session}/tools", self._tools)
        self.app.router.add_post("/sessions/{session}/act", self._act)
        self._runner: web.AppRunner | None = None
        self._host, self._port = "", 0
        self._mcps: dict[str, McpSession] = {}

    async def start(self, host: str = "127.0.0.1", port: int = 0, *, socket: str = "") -> None:
        """Listen at a port (0: any that is free) and, with ``socket``, at a Unix socket of this path."""
        _http.addFilter(_is_ours)
        self._runner = web.AppRunner(self.app, access_log=None, shutdown_timeout=1.0, logger=_http)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self._host, self._port = self._runner.addresses[0][:2]
        if socket:
            await web.UnixSite(self._runner, socket).start()

    async def close(self) -> None:
        """Close all sessions and connections."""
        for seat in self.seats.values():
            seat.session.close("The gateway is closed.")
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return self._port

    @property
    def address(self) -> str:
        """Its address, ``http://host:port``."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def add(self, seat: Seat) -> Seat:
        """Serve a session."""
        self.seats[seat.name] = seat
        return seat

    def remove(self, name: str) -> None:
        """Serve a session no more."""
        self.seats.pop(name, None)
        self._mcps.pop(name, None)

    def seat_of(self, request: web.Request) -> Seat:
        """The session that a request belongs to.

        Raises:
            RefusedError: its key is of no session, or of another one than its address.
        """
        key = given_key(request).encode("utf-8", "surrogateescape")
        name = request.match_info.get("session")
        known = self.seats.values() if name is None else filter(None, [self.seats.get(name)])
        for seat in known:
            if hmac.compare_digest(key, seat.key.encode()):
                return seat
        why = "This key is of no session here. Give the session's own: Authorization: Bearer KEY, or x-api-key: KEY."
        raise RefusedError(401, "invalid_api_key", why)

    # --- the three APIs -------------------------------------------------------------------------------

    def _of(self, api: Api) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                seat = self.seat_of(request)
                async with seat.bodies.object_of(request) as body:
                    return await self._answer(request, api, seat, body)
            except RefusedError as refused:
                return refusal(refused, api.error(refused))

        return handle

    async def _answer(self, request: web.Request, api: Api, seat: Seat, body: JsonBody) -> web.StreamResponse:
        given, size = body
        run = seat.bodies.offloader.run
        try:
            asked = await run(size, api.parse, given, sampled_by(seat.session.policy))
        except RefusedError as refused:
            seat.session.refused(refused.message)
            raise
        asking = seat.session.ask(asked, {"api": api.path, **given}, size)
        if asked.stream:
            return await _stream(request, api, asked, asking, functools.partial(run, size))
        answered = await asking
        text = await run(size, lambda: write_json(api.answer(asked, answered)))
        return web.Response(text=text, content_type="application/json")

    async def _count(self, request: web.Request) -> web.StreamResponse:
        try:
            seat = self.seat_of(request)
            sampled = sampled_by(seat.session.policy)
            async with seat.bodies.object_of(request) as (given, size):
                asked = await seat.bodies.offloader.run(
                    size, MESSAGES.parse, {"max_tokens": 1, **given}, sampled
                )
                return web.json_response({"input_tokens": await seat.session.count_tokens(asked, size)})
        except RefusedError as refused:
            return refusal(refused, MESSAGES.error(refused))

    async def _models(self, request: web.Request) -> web.StreamResponse:
        try:
            self.seat_of(request)
        except RefusedError as refused:
            return refusal(refused, CHAT.error(refused))
        model = {"id": self.model, "object": "model", "created": 0, "owned_by": "turnwise"}
        more = {"type": "model", "display_name": self.model, "created_at": "1970-01-01T00:00:00Z"}
        page = {"has_more": False, "first_id": self.model, "last_id": self.model}
        return web.json_response({"object": "list", "data": [model | more], **page})

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        paths = ", ".join([*(f"POST {api.path}" for api in APIS), "GET /v1/models"])
        refused = RefusedError(
            404, "not_found", f"There is no {request.method} {request.path:.100}; {paths}."
        )
        return refusal(refused, CHAT.error(refused))

    # --- the environment ------------------------------------------------------------------------------

    async def _mcp(self, request: web.Request) -> web.StreamResponse:
        try:
            seat = self.seat_of(request)
            world = _world(seat)
            if request.method == "DELETE":
                return web.Response(status=200)
            if request.method != "POST":
                return web.Response(status=405, headers={"Allow": "POST, DELETE"})
            mcp = self._mcps.get(seat.name)
            if mcp is None:
                mcp = self._mcps[seat.name] = McpSession(world, seat.tools(), world.specs())
            async with seat.bodies.whole(request) as body:
                answer = await mcp.answer(body, seat.bodies.parsed)
            return web.Response(status=202) if answer is None else web.json_response(answer)
        except RefusedError as refused:
            return refusal(refused, {"error": refused.message})

    async def _tools(self, request: web.Request) -> web.StreamResponse:
        try:
            world = _world(self.seat_of(request))
            return web.json_response({"tools": [spec.to_json() for spec in world.specs()]})
        except RefusedError as refused:
            return refusal(refused, {"error": refused.message})

    async def _act(self, request: web.Request) -> web.StreamResponse:
        try:
            seat = self.seat_of(request)
            world = _world(seat)
            async with seat.bodies.object_of(request) as (body, _):
                call = {"name": "say", "arguments": {"text": body["text"]}} if "text" in body else body
                name, arguments = call.get("name"), call.get("arguments", {})
                if not isinstance(name, str) or not isinstance(arguments, dict):
                    raise bad('Give {"name": TOOL, "arguments": {…}} or {"text": WORDS}.')
                done = await carry_out(world, seat.tools(), name, arguments, str(call.get("id") or "call_0"))
            end = None if done.end is None else done.end.value
            answer = {"text": said(done), "bad_action": done.bad_action, "end": end}
            return web.json_response(
                answer | ({"images": [image.data_uri for image in done.images]} if done.images else {})
            )
        except RefusedError as refused:
            return refusal(refused, {"error": refused.message})


def _is_ours(record: logging.LogRecord) -> bool:
    """Return False for a client's mistake that the HTTP server logs, which is answered and nobody else's affair."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


def given_key(request: web.Request) -> str:
    """The key that a request carries; "" if it has none."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")


def refusal(refused: RefusedError, body: Json) -> web.Response:
    """A refusal as it is sent."""
    headers: dict[str, str] = {}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if refused.retry_s is not None:
        headers["Retry-After"] = str(math.ceil(refused.retry_s))
    else:
        headers["x-should-retry"] = "false"  # which OpenAI's and Anthropic's SDKs heed
    return web.json_response(body, status=refused.status, headers=headers)


async def _stream(
    request: web.Request,
    api: Api,
    asked: ChatRequest,
    answer: Coroutine[Any, Any, Answered],
    run: Callable[[Callable[[], list[bytes]]], Awaitable[list[bytes]]],
) -> web.StreamResponse:
    """Answer by events. What is refused at once is no stream; what fails later is an event."""
    asking = asyncio.create_task(answer)
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
    )
    try:
        done, _ = await asyncio.wait([asking], timeout=WAITING_S)
        if done:
            asking.result()
        await response.prepare(request)
        while not asking.done():
            await response.write(api.waiting)
            await asyncio.wait([asking], timeout=WAITING_S)
        try:
            answered = asking.result()
        except RefusedError as refused:
            await response.write(api.error_event(refused).encode())
        else:
            for part in await run(lambda: [*_batches(api.events(asked, answered))]):
                await response.write(part)
                await asyncio.sleep(0)  # a long reply lets others in
        await response.write_eof()
    except ConnectionError:
        pass  # nobody listens any more
    finally:
        asking.cancel()  # what is being sampled is kept for when it is asked again
    return response


def _batches(events: Iterable[StreamEvent]) -> Iterator[bytes]:
    """Events as they are sent, some at a time."""
    batch = bytearray()
    for event in events:
        batch += event.encode()
        if len(batch) >= _BATCH:
            yield bytes(batch)
            batch.clear()
    yield bytes(batch)


def _world(seat: Seat) -> World:
    if seat.world is None:
        raise RefusedError(404, "not_found", "This session has no environment: its agent brings its own.")
    return seat.world
