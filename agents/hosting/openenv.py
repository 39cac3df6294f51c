"""Suites served by OpenEnv's protocol (0.10), so that its clients play them: a session for each connection, over WebSocket.

    → {"type": "reset", "data": {"seed": 7}}          ← {"type": "observation", "data": {"observation": …, "reward": null, "done": false}}
    → {"type": "step", "data": {"text": "search[red scarf]"}}
    → {"type": "state"}                               ← {"type": "state", "data": {"episode_id": …, "step_count": 1, …}}
    → {"type": "fork", "data": {"seed": 8}}           ← {"type": "forked", "data": {"session": …}}       (ours)

An action has ``text``, ``calls`` (name and arguments each), or both. An observation has ``messages``, their ``text``, the ``tools`` where they are
others than before, the reward's parts and ``end``, the reason of the end, for ``done`` does not tell a limit from an end. A task is that of ``index``,
or of ``seed``, or the next one; the chance of an episode is its seed's. A fork is a session of its own at the same moment:
whoever connects to ``/ws?session=…`` goes on there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import pydantic
from aiohttp import WSMsgType, web

from turnwise.agents.execution.threads import in_thread
from turnwise.blame import describe
from turnwise.doors import Door, open_door
from turnwise.envs.core import tool_specs
from turnwise.envs.messages import Message, Messages
from turnwise.envs.offered.session import OfferedEpisode, text_of
from turnwise.errors import DeadlineError, TurnwiseError
from turnwise.tasks.core import Json, Split
from turnwise.tools.core import ToolCall

MOST_BYTES = 1 << 20  # of a message


class OfferedCall(pydantic.BaseModel, extra="forbid"):
    """A call of a tool; its answer carries ``id``, where one is given."""

    name: str
    arguments: dict[str, Any] = {}
    id: str = ""


class OfferedAction(pydantic.BaseModel, extra="forbid"):
    """An agent's turn: words, calls, or both. ``malformed`` says why a call that it attempted cannot be read."""

    text: str = ""
    calls: list[OfferedCall] = []
    malformed: str = ""
    metadata: dict[str, Any] = {}

    def message(self, turn: int) -> Message:
        """The same as the environment hears it."""
        calls = (
            ToolCall(one.name, one.arguments, one.id or f"call_{turn}_{n}")
            for n, one in enumerate(self.calls)
        )
        return Message("assistant", self.text, tuple(calls), malformed=self.malformed)


class OfferedReset(pydantic.BaseModel, extra="forbid"):
    """The episode that begins."""

    seed: int | None = pydantic.Field(None, ge=0)
    index: int | None = pydantic.Field(None, ge=0)
    episode_id: str | None = pydantic.Field(None, max_length=255)


class ServedLimits(NamedTuple):
    """Limits of a server: sessions at once, seconds of a step, seconds after which a session that says nothing ends."""

    sessions: int = 256
    step_s: float = 60.0
    idle_s: float = 600.0


_LIMITS = ServedLimits()


class _Refused(Exception):
    """An answer that is an error, with OpenEnv's code for it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Session:
    """A connection's episode."""

    def __init__(self, episode: OfferedEpisode | None = None, about: Json = None) -> None:
        self.episode, self.about = episode, dict(about or {})
        self.told: list[dict[str, Json]] = []

    def close(self) -> None:
        """Give up what the episode's world holds."""
        if self.episode is not None:
            self.episode.close()

    def seen(self, messages: Messages, reward: float | None, rewards: Json) -> dict[str, Json]:
        """The observation, as OpenEnv has it."""
        episode = self.episode
        assert episode is not None
        observation: dict[str, Json] = {
            "messages": messages.to_json(),
            "text": text_of(messages),
            "end": episode.end,
            "rewards": rewards,
        }
        if (tools := tool_specs(episode.tools)) != self.told:
            observation["tools"] = self.told = tools
        return {"observation": observation, "reward": reward, "done": bool(episode.end)}


class SuiteServer:
    """Serves a suite's episodes to clients of OpenEnv.

    Attributes:
        app: the application, with ``/ws``, ``/health``, ``/metadata`` and ``/schema``.
    """

    def __init__(
        self,
        suite: str,
        door: Callable[[], Door],
        *,
        split: Split = Split.TRAIN,
        limits: ServedLimits = _LIMITS,
    ) -> None:
        self.suite, self.split, self.limits, self._door = suite, split, limits, door
        self._next, self._open = 0, 0
        self._forks: dict[str, tuple[float, _Session]] = {}
        self.app = web.Application(middlewares=[self._guard])
        self.app.add_routes([
            web.get("/ws", self._socket),
            web.get("/health", lambda _: _answer({"status": "healthy"})),
            web.get("/metadata", lambda _: _answer({"name": suite, "description": f"Turnwise's {suite}, {split}."})),
            web.get("/schema", lambda _: _answer(_schemas())),
        ])  # fmt: skip

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if refused := self._door().refuses(request.headers):
            return web.json_response({"error": refused[1]}, status=refused[0])
        if "Origin" in request.headers:  # a page in a browser may open sockets to this machine
            return web.json_response({"error": "Pages in browsers are not served."}, status=403)
        return await handler(request)

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(max_msg_size=MOST_BYTES, heartbeat=30.0)
        await socket.prepare(request)
        if self._open >= self.limits.sessions:
            await socket.send_json(
                _error("CAPACITY_REACHED", f"{self._open} sessions are open, the most there may be.")
            )
            await socket.close()
            return socket
        self._open += 1
        try:
            await self._converse(socket, request.query.get("session", ""))
        finally:
            self._open -= 1
        return socket

    async def _converse(self, socket: web.WebSocketResponse, fork: str) -> None:
        try:
            session = self._taken(fork) if fork else _Session()
        except _Refused as refused:
            await socket.send_json(_error(refused.code, str(refused)))
            return
        try:
            await self._answers(socket, session)
        finally:
            session.close()

    async def _answers(self, socket: web.WebSocketResponse, session: _Session) -> None:
        while True:
            try:
                said = await socket.receive(timeout=self.limits.idle_s)
            except TimeoutError:
                with contextlib.suppress(ConnectionError):
                    await socket.send_json(
                        _error("SESSION_ERROR", f"Nothing was said for {self.limits.idle_s:g} s.")
                    )
                return
            if said.type is not WSMsgType.TEXT:
                return
            try:
                answer = await self._answered(session, said.data)
            except _Refused as refused:
                answer = _error(refused.code, str(refused))
            except TurnwiseError as error:
                answer = _error("EXECUTION_ERROR", f"{error.cause} {error.remedy}")
            except Exception as error:  # noqa: BLE001 (an environment may raise anything)
                told = f"The environment of {self.suite} raises {describe(error)}"
                answer = _error("EXECUTION_ERROR", f"{told}; the episode stands where it stood.")
            if answer is None:
                return
            await socket.send_json(answer)

    async def _answered(self, session: _Session, text: str) -> dict[str, Json] | None:
        try:
            said = json.loads(text)
            kind, data = said["type"], said.get("data") or {}
        except (ValueError, RecursionError):
            raise _Refused("INVALID_JSON", "That is no JSON.") from None
        except (TypeError, KeyError, AttributeError):
            raise _Refused(
                "VALIDATION_ERROR", 'Say {"type": "reset" | "step" | "state" | "close"}.'
            ) from None
        if kind == "close":
            return None
        if kind == "reset":
            return {
                "type": "observation",
                "data": await self._in_time(self._begin, session, _read(OfferedReset, data)),
            }
        if kind not in ("step", "state", "fork"):
            raise _Refused(
                "UNKNOWN_TYPE", f"{str(kind)[:40]!r}: reset, step, state, fork and close are known."
            )
        if session.episode is None:
            raise _Refused("EXECUTION_ERROR", "Nothing was begun: reset comes first.")
        if kind == "state":
            return {"type": "state", "data": self._state(session)}
        if kind == "fork":
            return {"type": "forked", "data": {"session": self._forked(session, data)}}
        return {
            "type": "observation",
            "data": await self._in_time(_play, session, _read(OfferedAction, data)),
        }

    async def _in_time(
        self, act: Callable[[_Session, Any], dict[str, Json]], session: _Session, said: Any
    ) -> dict[str, Json]:
        """Do something in a thread, within the limit; a session whose step hangs is over."""
        try:
            return await in_thread(f"a turn of {self.suite}", self.limits.step_s, act, session, said)
        except DeadlineError:
            session.episode = None
            raise _Refused(
                "EXECUTION_ERROR", f"It took more than {self.limits.step_s:g} s; the episode is given up."
            ) from None

    def _begin(self, session: _Session, asked: OfferedReset) -> dict[str, Json]:
        index = asked.index if asked.index is not None else asked.seed
        if index is None:
            index, self._next = self._next, self._next + 1
        seed = index if asked.seed is None else asked.seed
        session.close()
        session.episode = None  # what comes next may fail
        session.episode, session.told = OfferedEpisode(self.suite, index, self.split, seed), []
        session.about = {"episode_id": asked.episode_id or secrets.token_hex(8), "index": index, "seed": seed}
        return session.seen(session.episode.opening, None, {})

    def _state(self, session: _Session) -> dict[str, Json]:
        assert session.episode is not None
        now = session.episode.env.now
        about = {"suite": self.suite, "split": str(self.split), "task": now.task.id}
        return (
            session.about
            | about
            | {"step_count": now.turn, "end": session.episode.end, "reward": session.episode.reward}
        )

    def _forked(self, session: _Session, data: Json) -> str:
        assert session.episode is not None
        asked = _read(OfferedFork, data)
        now = time.monotonic()
        for name in [name for name, (since, _) in self._forks.items() if now - since >= self.limits.idle_s]:
            self._forks.pop(name)[1].close()
        if len(self._forks) >= self.limits.sessions:
            raise _Refused("CAPACITY_REACHED", f"{len(self._forks)} forks wait for somebody who connects.")
        name, twin = secrets.token_urlsafe(12), _Session(session.episode.fork(asked.seed), session.about)
        twin.told = session.told
        self._forks[name] = now, twin
        return name

    def _taken(self, name: str) -> _Session:
        if name not in self._forks:
            raise _Refused("SESSION_ERROR", "There is no such fork: it was taken, or waited too long.")
        return self._forks.pop(name)[1]


class OfferedFork(pydantic.BaseModel, extra="forbid"):
    seed: int | None = pydantic.Field(None, ge=0)


def _play(session: _Session, action: OfferedAction) -> dict[str, Json]:
    episode = session.episode
    assert episode is not None
    before = episode.reward
    heard = episode.play(action.message(episode.env.now.turn))
    return session.seen(heard, episode.reward - before, episode.paid)


def _read(kind: type[Any], data: Json) -> Any:
    try:
        return kind.model_validate(data)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "data"
        raise _Refused("VALIDATION_ERROR", f"{where}: {first['msg']}.") from None


def _error(code: str, message: str) -> dict[str, Json]:
    return {"type": "error", "data": {"code": code, "message": message}}


async def _answer(value: Json) -> web.Response:
    return web.json_response(value)


def _schemas() -> dict[str, Json]:
    seen = {
        "type": "object",
        "properties": {
            "messages": {"type": "array"}, "text": {"type": "string"}, "end": {"type": "string"},
            "rewards": {"type": "object"}, "tools": {"type": "array"},
        },
    }  # fmt: skip
    state = {
        "type": "object",
        "properties": {"episode_id": {"type": "string"}, "step_count": {"type": "integer"}},
    }
    return {"action": OfferedAction.model_json_schema(), "observation": seen, "state": state}


class OfferedServer(Protocol):
    """A server whose application is run."""

    app: web.Application


async def serve_openenv(
    server: Callable[[Callable[[], Door]], OfferedServer],
    host: str,
    port: int,
    token: str,
    ready: Callable[[str], None],
) -> None:
    """Serve until it is cancelled; ``ready`` is told the address.

    Raises:
        TurnwiseError: the port is taken, or there is no token where other machines reach it.
    """
    door = open_door(host, port, token)
    runner = web.AppRunner(server(lambda: door).app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        try:
            await site.start()
        except OSError as error:
            raise TurnwiseError(
                f"Nothing can listen on {host}:{port}: {error.strerror}.", "Choose another --port."
            ) from error
        door = door._replace(port=runner.addresses[0][1])
        ready(door.address)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
