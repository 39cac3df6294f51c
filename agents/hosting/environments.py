"""A suite's environments for agents that bring a model of their own: each connection by MCP is an episode.

A client that says ``initialize`` gets the next task and, as ``Mcp-Session-Id``, the episode's name, with which every client of
the protocol goes on; ``?index=3`` behind the address says which task. It ends when the environment says so, when the client
says good-bye (``DELETE``), or when nothing was heard of it for too long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aiohttp import web

from turnwise.agents.core import History, Reply
from turnwise.agents.gateway.bodies import Bodies, parse_json
from turnwise.agents.gateway.core import RefusedError, bad
from turnwise.agents.gateway.mcp import McpSession
from turnwise.agents.gateway.server import refusal
from turnwise.agents.hosting.session_host import Host, Hosted
from turnwise.doors import Door
from turnwise.envs.core import EndReason

ID = "Mcp-Session-Id"
KEPT = 1000
"""Episodes that are over and whose clients are still told so."""


class NoModel:
    """Stands where a policy is asked for and agents bring their own."""

    version = 0

    def __init__(self, name: str) -> None:
        self.name = name

    async def act(self, history: History) -> Reply:
        raise RefusedError(404, "no_model", "This server has environments and no model: bring your own.")

    def close(self) -> None:
        """Nothing is held."""


class _Connected(NamedTuple):
    hosted: Hosted
    mcp: McpSession


def add_mcp(host: Host, door: Callable[[], Door]) -> None:
    """Add ``/mcp`` to a host's server, before it is started; ``door`` decides who may connect."""
    known: dict[str, _Connected] = {}
    bodies = Bodies()

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            refused = door().refuses(request.headers)
            if refused is not None:
                raise RefusedError(refused[0], "invalid_token", refused[1])
            if request.method not in ("POST", "DELETE"):
                return web.Response(status=405, headers={"Allow": "POST, DELETE"})
            name = request.headers.get(ID, "")
            if request.method == "DELETE":
                return await goodbye(name)
            async with bodies.whole(request) as body:
                if not name and not _is_greeting(body):
                    raise bad(f"Say `initialize` first, and give its {ID} from then on.")
                name, connected = await connect(request) if not name else (name, find(name))
                connected.hosted.play.session.touch()
                answer = await connected.mcp.answer(body, bodies.parsed)
            headers = {ID: name}
            if answer is None:
                return web.Response(status=202, headers=headers)
            return web.json_response(answer, headers=headers)
        except RefusedError as refused:
            return refusal(refused, {"error": refused.message})

    def find(name: str) -> _Connected:
        if name not in known:
            raise RefusedError(404, "not_found", "There is no such session: say `initialize` again.")
        return known[name]

    async def connect(request: web.Request) -> tuple[str, _Connected]:
        index = request.query.get("index", "")
        if index and not (index.isascii() and index.isdecimal() and len(index) < 16):
            raise bad("index counts a suite's tasks from 0.", "index")
        hosted = await host.open(index=int(index) if index else None)
        over = [name for name, one in known.items() if one.hosted.episode.done()]
        for name in over[:-KEPT]:
            del known[name]
        made = McpSession(hosted.play, tuple(hosted.play.history.tools), hosted.play.specs())
        known[hosted.seat.name] = _Connected(hosted, made)
        return hosted.seat.name, known[hosted.seat.name]

    async def goodbye(name: str) -> web.Response:
        find(name)
        del known[name]
        if name in host.open_sessions:
            await host.end(name, EndReason.GAVE_UP)
        return web.Response(status=200)

    host.server.app.router.add_route("*", "/mcp", handle)


def _is_greeting(body: bytearray) -> bool:
    try:
        said = parse_json(body)
    except RefusedError:
        return False
    return isinstance(said, dict) and said.get("method") == "initialize"
