"""One episode of one task over HTTP, for an agent in a container beside it (docs/how-to/worlds-elsewhere.md, Harbor).

    GET  /opening   what was heard first, and the tools
    POST /step      {"text": …} or {"calls": [{"name": …, "arguments": {…}}]}: a turn; answered with what is heard
    POST /score     ends the episode, and is answered with its reward

Nobody can begin it anew, go back or fork it: the agent has one try, and whoever asks for the score has had it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pydantic
from aiohttp import web

from turnwise.agents.execution.threads import in_thread
from turnwise.agents.hosting.openenv import MOST_BYTES, OfferedAction
from turnwise.blame import describe
from turnwise.doors import Door
from turnwise.envs.core import tool_specs
from turnwise.envs.offered.session import OfferedEpisode, text_of
from turnwise.errors import TurnwiseError
from turnwise.tasks.core import Json, Split


class OneTaskServer:
    """Serves one episode.

    Attributes:
        app: the application, with ``/opening``, ``/step``, ``/score`` and ``/health``.
    """

    def __init__(
        self,
        suite: str,
        index: int,
        door: Callable[[], Door],
        *,
        split: Split = Split.TRAIN,
        step_s: float = 60.0,
    ) -> None:
        self.episode = OfferedEpisode(suite, index, split)
        self.suite, self.step_s, self._door = suite, step_s, door
        self._heard, self._scored, self._turn = self.episode.opening, False, asyncio.Lock()
        self.app = web.Application(middlewares=[self._guard], client_max_size=MOST_BYTES)
        self.app.add_routes([
            web.get("/health", self._health), web.get("/opening", self._opening),
            web.post("/step", self._step), web.post("/score", self._score),
        ])  # fmt: skip

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if refused := self._door().refuses(request.headers):
            return web.json_response({"error": refused[1]}, status=refused[0])
        async with self._turn:
            try:
                return await handler(request)
            except TurnwiseError as error:
                return web.json_response({"error": f"{error.cause} {error.remedy}"}, status=409)
            except web.HTTPException:
                raise
            except Exception as error:  # noqa: BLE001 (an environment may raise anything)
                return web.json_response({"error": f"{self.suite} raises {describe(error)}"}, status=500)

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "healthy"})

    async def _opening(self, request: web.Request) -> web.Response:
        return web.json_response(self._seen())

    async def _step(self, request: web.Request) -> web.Response:
        try:
            action = OfferedAction.model_validate(json.loads(await request.read()))
        except (ValueError, RecursionError) as error:
            first = (
                error.errors()[0]
                if isinstance(error, pydantic.ValidationError)
                else {"loc": (), "msg": "no JSON"}
            )
            where = ".".join(map(str, first["loc"])) or "the action"
            return web.json_response({"error": f"{where}: {first['msg']}"}, status=400)
        if self._scored:
            return web.json_response(
                {"error": "The score was asked for, which ended the episode."}, status=409
            )
        turn = self.episode.env.now.turn
        what = f"a turn of {self.suite}"
        self._heard = await in_thread(what, self.step_s, self.episode.play, action.message(turn))
        return web.json_response(self._seen())

    async def _score(self, request: web.Request) -> web.Response:
        self._scored = True
        return web.json_response(
            {"reward": self.episode.reward, "end": self.episode.end, "turns": self.episode.env.now.turn}
        )

    def _seen(self) -> Json:
        tools = [] if self.episode.end else tool_specs(self.episode.tools)
        return {"text": text_of(self._heard), "tools": tools, "end": self.episode.end}
