"""Requests of a hundred megabytes, slow ones, and small ones that grow: refused by name, in little memory, and others go on."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import pytest
from test_sessions import TASK, ask, session_of, user

from turnwise.agents.core import Reply
from turnwise.agents.gateway.bodies import BodyLimits
from turnwise.agents.gateway.core import ChatRequest, RefusedError
from turnwise.agents.gateway.server import Seat
from turnwise.agents.gateway.sessions import AgentSession, SessionLimits
from turnwise.envs.core import AgentEnv
from turnwise.envs.messages import Message

MB = 1 << 20
SAID = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
PATHS = ("v1/chat/completions", "v1/responses", "v1/messages", "v1/messages/count_tokens", "mcp", "act")


class Nowhere:
    """A world without tools."""

    instructions = ""

    def specs(self):
        return []


@contextmanager
def at_most(megabytes: float) -> Iterator[None]:
    """What is allocated at any moment within stays below this."""
    tracemalloc.start()
    try:
        yield
        most = tracemalloc.get_traced_memory()[1] / MB
    finally:
        tracemalloc.stop()
    assert most < megabytes, most


async def told(client: aiohttp.ClientSession, url: str, **more) -> tuple[int, str]:
    """The status of a POST's answer and what it says."""
    async with client.post(url, **more) as response:
        return response.status, await response.text()


@pytest.mark.slow
@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("letter", [b"x", b"["])
def test_a_hundred_megabytes_are_refused_in_little_memory_and_other_sessions_go_on(
    serve, renderer, letter, announced
):
    async def run():
        async with (
            serve(lambda text: "yes", bodies=BodyLimits()) as served,
            aiohttp.ClientSession(headers=served.headers) as client,
            aiohttp.ClientSession() as neighbour,
        ):
            other = served.server.add(Seat(session_of(renderer, lambda text: "no")[0]))
            url, answers = f"{served.server.address}/sessions/{other.name}/v1/chat/completions", []

            async def parts() -> AsyncIterator[bytes]:
                for n in range(100):
                    yield letter * MB
                    if n % 20 == 5:
                        body = SAID | {"user": str(n)}
                        answers.append(
                            await told(neighbour, url, json=body, headers={"x-api-key": other.key})
                        )

            length = {"Content-Length": str(100 * MB)} if announced else {}
            with at_most(1.5 * 32):
                status, said = await told(client, f"{served.url}/{PATHS[0]}", data=parts(), headers=length)
            assert (status, json.loads(said)["error"]["code"]) == (413, "request_too_large")
            assert answers or announced
            assert {status for status, _ in answers} == ({200} if answers else set())
            assert served.seat.bodies.held == 0

    asyncio.run(run())


@pytest.mark.slow
def test_every_address_refuses_what_is_too_large_or_packed_to_look_small(serve):
    async def run():
        async with (
            serve(lambda text: "yes") as served,
            aiohttp.ClientSession(headers=served.headers) as client,
        ):
            served.seat.world = Nowhere()
            packed = gzip.compress(b"x" * (100 * MB))
            for path in PATHS:
                for body, headers in ((b"x" * 2 * MB, {}), (packed, {"Content-Encoding": "gzip"})):
                    with at_most(8):
                        status, said = await told(
                            client, f"{served.url}/{path}", data=io.BytesIO(body), headers=headers
                        )
                    assert (status, "1 MiB" in said) == (413, True), (path, said)

    asyncio.run(run())


def test_a_body_that_comes_too_slowly_or_beside_too_many_others_is_refused_by_name(serve, renderer):
    async def run():
        limits = BodyLimits(body=MB, held=3 * MB // 2, seconds=0.5)
        async with (
            serve(lambda text: "yes", bodies=limits) as served,
            aiohttp.ClientSession(headers=served.headers) as client,
        ):
            url, never = f"{served.url}/v1/chat/completions", asyncio.Event()

            async def parts() -> AsyncIterator[bytes]:
                yield b" " * (MB - 1)
                await never.wait()

            slow = [asyncio.create_task(told(client, url, data=parts())) for _ in range(2)]
            done, waiting = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
            assert [
                (status, "too_much_at_once" in said) for status, said in (one.result() for one in done)
            ] == [(429, True)]
            other = served.server.add(Seat(session_of(renderer, lambda text: "no")[0]))
            there = f"{served.server.address}/sessions/{other.name}/v1/chat/completions"
            assert (await told(client, there, json=SAID, headers={"Authorization": f"Bearer {other.key}"}))[
                0
            ] == 200
            (left,) = waiting
            status, said = await left
            assert (status, "request_timeout" in said) == (408, True)
            assert (await told(client, url, json=SAID))[0] == 200
            assert served.seat.bodies.held == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"[" * (31 * MB), 413), (b"[" * 900_000, 400), (b"[" + b"[]," * (10 * MB) + b"1]", 413), (b'"' + b"," * 900_000, 400)],
    ids=["brackets", "fewer brackets", "empty lists", "half a text"],
)  # fmt: skip
def test_what_would_be_large_as_values_is_refused_before_it_is_one(serve, body, status):
    async def run():
        async with (
            serve(lambda text: "yes", bodies=BodyLimits()) as served,
            aiohttp.ClientSession(headers=served.headers) as client,
        ):
            with at_most(4 * 32):  # as sent, as received, and as text
                found, said = await told(client, f"{served.url}/v1/chat/completions", data=io.BytesIO(body))
            assert (found, "message" in json.loads(said)["error"]) == (status, True)

    asyncio.run(run())


def nested(depth: int) -> str:
    return '{"x":' * depth + "1" + "}" * depth


def deep_requests(depth: int) -> Iterator[str]:
    """Requests in which something is nested so deep, wherever a client decides what stands there."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": nested(depth)}}
    talk = [*SAID["messages"], {"role": "assistant", "tool_calls": [call]}]
    tool = {"type": "function", "function": {"name": "f", "parameters": "DEEP"}}
    yield json.dumps(SAID | {"messages": [*talk, {"role": "tool", "tool_call_id": "c", "content": "1"}]})
    for more in ({"metadata": "DEEP"}, {"tools": [tool]}):
        yield json.dumps(SAID | more).replace('"DEEP"', nested(depth))


def test_no_depth_of_nesting_passes_for_a_failure_of_ours(serve):
    """A failure that is ours would leave the episode out of the score, and an agent could choose it."""

    async def run():
        async with (
            serve(lambda text: "yes") as served,
            aiohttp.ClientSession(headers=served.headers) as client,
        ):
            for depth in (50, 97, 150, 300, 450, 500, 600, 900, 940, 950, 960, 970, 980):
                for body in deep_requests(depth):
                    status, said = await told(client, f"{served.url}/v1/chat/completions", data=body)
                    assert status in (200, 400), (depth, status, said)
                    assert served.seat.session.fault == ""

    asyncio.run(run())


def test_a_session_keeps_each_message_once_and_nothing_of_what_it_refused(renderer):
    async def run():
        session, *_ = session_of(renderer, lambda text: "fine")
        with at_most(8):
            for n in range(40):
                with pytest.raises(RefusedError, match="assistant"):
                    await ask(session, user(f"{n} " + "x" * MB), Message("assistant", "and"))
        talk: list[Message] = []
        for n in range(20):
            talk = [Message(one.role, f"{one.content}") for one in talk]
            talk.append(user(f"{n} hello"))
            talk.append((await ask(session, *talk)).message)
        assert len({id(message) for told in session._told.values() for message in told}) == len(talk)

    asyncio.run(run())


def test_letters_are_a_budget_and_what_cannot_fit_is_refused_before_its_tokens_are_counted(
    renderer, monkeypatch
):
    async def run():
        session, *_ = session_of(renderer, lambda text: "yes", limits=SessionLimits(letters=50))
        await ask(session, user("x" * 30))
        await ask(session, user("x" * 30), user("y" * 30))
        with pytest.raises(RefusedError, match="letters") as caught:
            await ask(session, user("z"))
        assert caught.value.code == "budget_spent"
        session, engine, _ = session_of(renderer, lambda text: "yes")
        engine.context_length = 1000
        monkeypatch.setattr(renderer.encoder, "encode", None)
        with pytest.raises(RefusedError, match="maximum context length") as caught:
            await ask(session, user("x" * MB))
        assert (caught.value.status, session.fault) == (400, "")

    asyncio.run(run())


def test_a_policy_s_reply_of_a_hundred_megabytes_is_its_failure_and_nothing_of_it_is_sent():
    class Endless:
        name, version = "endless", 0

        async def act(self, history):
            return Reply(Message("assistant", "x" * (100 * MB)))

        def close(self):
            pass

    async def run():
        session = AgentSession(Endless(), TASK, AgentEnv[int]())
        with at_most(110), pytest.raises(RefusedError, match="104,857,600 letters") as caught:
            await session.ask(ChatRequest((user("a"),)), {"messages": []})
        assert (caught.value.status, bool(session.fault)) == (503, True)

    asyncio.run(run())
