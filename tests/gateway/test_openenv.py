"""Suites served by OpenEnv's protocol: the same episodes, and nothing that breaks a server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, web

from turnwise.agents.hosting.one_task import OneTaskServer
from turnwise.agents.hosting.openenv import ServedLimits, SuiteServer
from turnwise.doors import Door, open_door
from turnwise.envs.core import tool_specs
from turnwise.envs.messages import Message
from turnwise.envs.offered.session import OfferedEpisode, text_of
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.envs.shop.env import ShopEnv
from turnwise.errors import EnvError
from turnwise.tasks.core import Split


@asynccontextmanager
async def served(suite: str, limits: ServedLimits | None = None, token: str = "none") -> AsyncIterator[str]:
    door = [open_door("127.0.0.1", 0, token)]
    server = SuiteServer(suite, lambda: door[0], limits=limits or ServedLimits())
    runner = web.AppRunner(server.app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    door[0] = Door("127.0.0.1", runner.addresses[0][1], door[0].token)
    try:
        yield f"http://127.0.0.1:{door[0].port}"
    finally:
        await runner.cleanup()


class Client:
    """Says what OpenEnv's `GenericEnvClient` says."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket

    async def ask(self, said: dict[str, Any] | str) -> dict[str, Any]:
        await self.socket.send_str(said if isinstance(said, str) else json.dumps(said))
        return await self.socket.receive_json(timeout=20)

    async def reset(self, **data: Any) -> dict[str, Any]:
        answer = await self.ask({"type": "reset", "data": data})
        assert answer["type"] == "observation", answer
        return answer["data"]

    async def step(self, **data: Any) -> dict[str, Any]:
        answer = await self.ask({"type": "step", "data": data})
        assert answer["type"] == "observation", answer
        return answer["data"]


def playing(suite: str, play: Callable[[Client, ClientSession, str], Any], **given: Any) -> Any:
    async def all_of_it() -> Any:
        async with (
            served(suite, **given) as url,
            ClientSession() as session,
            session.ws_connect(f"{url}/ws") as socket,
        ):
            return await play(Client(socket), session, url)

    return asyncio.run(all_of_it())


def action_of(message: Message | str) -> dict[str, Any]:
    if isinstance(message, str):
        return {"text": message}
    return {
        "text": message.content,
        "calls": [{"name": c.name, "arguments": dict(c.arguments)} for c in message.tool_calls],
    }


@pytest.mark.parametrize("suite", ["shop/easy", "functioncall/single", "toolworld/retail"])
def test_episodes_are_those_that_are_played_here(suite: str) -> None:
    async def play(client: Client, *_: Any) -> None:
        for index in range(4):
            here = make(suite_task(get_suite(suite), Split.TRAIN, index).env)
            opening, _ = here.reset(
                seed=index, options={"task": suite_task(get_suite(suite), Split.TRAIN, index)}
            )
            seen = await client.reset(seed=index)
            assert seen["observation"]["messages"] == opening.to_json()
            assert (seen["reward"], seen["done"]) == (None, False)
            while not seen["done"]:
                gold = here.gold(here.state)
                asked = action_of(gold)
                calls = asked.get("calls", [])
                turn = here.now.turn
                told = Message.from_json({
                    "role": "assistant", "content": asked["text"],
                    "tool_calls": [{**call, "id": f"call_{turn}_{n}"} for n, call in enumerate(calls)],
                })  # fmt: skip
                observation, reward, ended, truncated, info = here.step(told)
                seen = await client.step(**asked)
                assert seen["observation"]["messages"] == observation.to_json()
                assert seen["reward"] == pytest.approx(reward)
                assert seen["done"] == (ended or truncated)
                assert seen["observation"]["end"] == str(info.get("end") or "")
            state = (await client.ask({"type": "state"}))["data"]
            assert state["reward"] == pytest.approx(1.0)
            assert (state["index"], state["step_count"]) == (index, here.now.turn)

    playing(suite, play)


def test_a_fork_goes_on_from_the_same_moment() -> None:
    async def play(client: Client, session: ClientSession, url: str) -> None:
        await client.reset(seed=3)
        episode = OfferedEpisode("shop/easy", 3)
        env = episode.env
        await client.step(**action_of(env.gold(env.state)))
        env.step(env.gold(env.state))
        name = (await client.ask({"type": "fork"}))["data"]["session"]
        nonsense = await client.step(text="click[nowhere]")
        async with session.ws_connect(f"{url}/ws?session={name}") as socket:
            twin = Client(socket)
            while True:
                seen = await twin.step(**action_of(env.gold(env.state)))
                env.step(env.gold(env.state))
                if seen["done"]:
                    break
            assert (await twin.ask({"type": "state"}))["data"]["reward"] == pytest.approx(1.0)
        assert not nonsense["done"]
        async with session.ws_connect(f"{url}/ws?session={name}") as socket:
            assert (await socket.receive_json())["data"]["code"] == "SESSION_ERROR"

    playing("shop/easy", play)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("{", "INVALID_JSON"),
        ("[" * 100_000, "INVALID_JSON"),
        ("3", "VALIDATION_ERROR"),
        ({"type": "dance"}, "UNKNOWN_TYPE"),
        ({"type": "step", "data": {"text": "x"}}, "EXECUTION_ERROR"),
        ({"type": "reset", "data": {"seed": -1}}, "VALIDATION_ERROR"),
        ({"type": "reset", "data": {"seed": 1, "difficulty": 2}}, "VALIDATION_ERROR"),
        ({"type": "reset", "data": 3}, "VALIDATION_ERROR"),
    ],
)
def test_what_cannot_be_read_is_refused_and_the_session_goes_on(said: Any, code: str) -> None:
    async def play(client: Client, *_: Any) -> None:
        answer = await client.ask(said)
        assert (answer["type"], answer["data"]["code"]) == ("error", code)
        assert (await client.reset(seed=0))["observation"]["text"]
        answer = await client.ask({"type": "step", "data": {"words": "buy"}})
        assert answer["data"]["code"] == "VALIDATION_ERROR"
        assert "words" in answer["data"]["message"]

    playing("shop/easy", play)


def test_an_environment_that_raises_is_an_error_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns, transition = list[Message](), ShopEnv.transition

    def breaks(self: ShopEnv, state: Any, action: Message) -> Any:
        turns.append(action)
        if len(turns) == 2:
            raise KeyError("no such shelf")
        return transition(self, state, action)

    def no_way_back(self: ShopEnv, *, seed: int | None = None) -> Any:
        raise EnvError("Nobody can go back.", "Play on.") if seed else ZeroDivisionError("twice")

    async def play(client: Client, *_: Any) -> None:
        await client.reset(seed=0)
        await client.step(text="search[lamp]")
        answer = await client.ask({"type": "step", "data": {"text": "search[red lamp]"}})
        assert answer["data"]["code"] == "EXECUTION_ERROR"
        assert "no such shelf" in answer["data"]["message"]
        assert "shop/easy" in answer["data"]["message"]
        assert (await client.ask({"type": "state"}))["data"]["step_count"] == 1
        for seed, said in ((5, "Nobody can go back. Play on."), (0, "twice")):
            answer = await client.ask({"type": "fork", "data": {"seed": seed}})
            assert answer["data"]["code"] == "EXECUTION_ERROR"
            assert said in answer["data"]["message"]
        assert not (await client.step(text="search[lamp]"))["done"]

    monkeypatch.setattr(ShopEnv, "transition", breaks)
    monkeypatch.setattr(ShopEnv, "fork", no_way_back)
    playing("shop/easy", play)


def test_answers_carry_the_ids_of_calls_and_unread_calls_are_told() -> None:
    async def play(client: Client, *_: Any) -> None:
        seen = await client.reset(seed=0)
        tool = seen["observation"]["tools"][0]["function"]["name"]
        seen = await client.step(text="", calls=[{"name": tool, "arguments": {}, "id": "mine-1"}])
        assert [m["tool_call_id"] for m in seen["observation"]["messages"]] == ["mine-1"]
        seen = await client.step(text="", malformed="The arguments are no JSON.")
        assert "no JSON" in seen["observation"]["text"]

    playing("toolworld/retail", play)


def test_worlds_are_given_up_with_their_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = list[OfferedEpisode]()
    monkeypatch.setattr(OfferedEpisode, "close", lambda self: closed.append(self))

    async def play(client: Client, *_: Any) -> None:
        await client.reset(seed=0)
        assert closed == []
        await client.reset(seed=1)
        assert len(closed) == 1

    playing("shop/easy", play)
    assert len(closed) == 2, "one by the next reset, one by the end of the connection"


def test_what_comes_after_the_end_is_refused() -> None:
    async def play(client: Client, *_: Any) -> None:
        seen = await client.reset(seed=0)
        while not seen["done"]:
            seen = await client.step(text="hm")
        assert seen["observation"]["end"] == "turn_limit"
        assert "has ended" in (await client.ask({"type": "step", "data": {"text": "hm"}}))["data"]["message"]

    playing("shop/easy", play)


def test_there_is_room_for_so_many_and_the_silent_leave() -> None:
    async def play(client: Client, session: ClientSession, url: str) -> None:
        await client.reset(seed=0)
        async with session.ws_connect(f"{url}/ws") as socket:
            assert (await socket.receive_json())["data"]["code"] == "CAPACITY_REACHED"
        assert (await client.socket.receive_json(timeout=20))["data"]["code"] == "SESSION_ERROR"
        async with session.ws_connect(f"{url}/ws") as socket:
            assert (await Client(socket).reset(seed=0))["observation"]["text"]

    playing("shop/easy", play, limits=ServedLimits(sessions=1, idle_s=1.0))


def test_who_may_not_come_in() -> None:
    async def play() -> None:
        async with served("shop/easy", token="secret-token") as url, ClientSession() as session:
            for headers, status in (
                ({}, 401),
                ({"Authorization": "Bearer secret-token", "Host": "evil.example"}, 421),
                ({"Authorization": "Bearer secret-token", "Origin": "http://evil.example"}, 403),
                ({"Authorization": "Bearer secret-token"}, 200),
            ):
                async with session.get(f"{url}/health", headers=headers) as answer:
                    assert answer.status == status

    asyncio.run(play())


def test_there_is_one_try_of_one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        door = open_door("127.0.0.1", 0, "none")
        server = OneTaskServer("shop/easy", 3, lambda: door)
        runner = web.AppRunner(server.app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        door = Door("127.0.0.1", runner.addresses[0][1], "")
        async with ClientSession(f"http://127.0.0.1:{door.port}") as session:

            async def asked(path: str, data: Any = None) -> tuple[int, dict[str, Any]]:
                kept = data if isinstance(data, bytes) else json.dumps(data)
                ask = session.get(path) if data is None else session.post(path, data=kept)
                async with ask as answer:
                    return answer.status, await answer.json()

            opening = OfferedEpisode("shop/easy", 3)
            assert (await asked("/opening"))[1]["text"] == text_of(opening.opening)
            heard = text_of(opening.play(Message("assistant", "search[lamp]")))
            status, told = await asked("/step", {"text": "search[lamp]"})
            assert (status, told["text"], told["end"]) == (200, heard, "")
            assert told["tools"] == tool_specs(opening.tools)
            assert (await asked("/opening"))[1]["text"] == heard, "what was heard last"
            for said, status in ((b"{", 400), (b"[" * 100_000, 400), ({"words": "x"}, 400)):
                assert (await asked("/step", said))[0] == status
            monkeypatch.setattr(ShopEnv, "transition", lambda *_: 1 / 0)
            status, told = await asked("/step", {"text": "search[lamp]"})
            assert (status, "ZeroDivisionError" in told["error"]) == (500, True)
            assert await asked("/score", {}) == (200, {"reward": 0.0, "end": "", "turns": 1})
            status, told = await asked("/step", {"text": "search[lamp]"})
            assert (status, "ended the episode" in told["error"]) == (409, True)
        await runner.cleanup()

    asyncio.run(play())


@pytest.mark.full
def test_the_client_of_openenv_plays(tmp_path: Any) -> None:
    """With an interpreter that has openenv in it: TURNWISE_OPENENV=/path/to/python."""
    python = os.environ.get("TURNWISE_OPENENV")
    if not python:
        pytest.skip("TURNWISE_OPENENV names no interpreter")
    program = """
import sys
from openenv.core import GenericEnvClient
with GenericEnvClient(base_url=sys.argv[1]).sync() as env:
    seen = env.reset(seed=4)
    print(seen.observation["text"][:40])
    while not seen.done:
        seen = env.step({"text": "search[lamp]"})
    print(seen.observation["end"], env.state()["step_count"])
"""
    with subprocess.Popen(
        [sys.executable, "-m", "turnwise", "serve-openenv", "shop/easy", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None
        url = next(line for line in server.stderr if line.startswith("ready: ")).split()[1]
        try:
            done = subprocess.run(
                [python, "-c", program, url], capture_output=True, text=True, check=False, timeout=120
            )
        finally:
            server.terminate()
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith("turn_limit ")
