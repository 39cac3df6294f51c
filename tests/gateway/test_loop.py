"""The gateway's event loop waits for no request: large ones are refused early or read in threads, slow ones are not our fault."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time

import aiohttp
import pytest
from test_sessions import ask, session_of, user

from turnwise.agents.gateway import offloading, server
from turnwise.agents.gateway.core import RefusedError
from turnwise.agents.gateway.offloading import MANY, SHORT, read_json
from turnwise.agents.gateway.sessions import SessionLimits
from turnwise.envs.messages import Message
from turnwise.tools.core import ToolCall

HI = [{"role": "user", "content": "hi"}]
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize(
    "parts",
    [
        [user("")] * 300,
        [user("x"), Message("assistant", "", (ToolCall("f", {}, "c"),) * 300), Message("tool", "", tool_call_id="c")],
    ],
    ids=["messages", "calls"],
)  # fmt: skip
def test_each_message_and_call_counts_a_token_before_any_are_counted(renderer, monkeypatch, parts):
    async def run():
        session, engine, _ = session_of(renderer, lambda text: "yes")
        engine.context_length = 200
        monkeypatch.setattr(renderer.encoder, "encode", None)
        with pytest.raises(RefusedError, match="maximum context length") as caught:
            await ask(session, *parts)
        assert (caught.value.code, session.fault) == ("context_length_exceeded", "")

    asyncio.run(run())


@pytest.mark.parametrize(
    "more",
    [
        {"messages": [{"role": "user", "content": ""}] * 30_000},
        {"messages": [*HI, {"role": "assistant", "tool_calls": [CALL] * 40_000}, *HI]},
        {"messages": HI, "tools": [TOOL] * 10_000},
        {"messages": HI, "metadata": {str(n): n for n in range(MANY)}},
    ],
    ids=["messages", "calls", "tools", "metadata"],
)
def test_a_large_request_is_read_beside_the_event_loop(serve, more):
    async def run():
        async with (
            serve(lambda text: "yes", context_length=4000) as served,
            aiohttp.ClientSession(headers=served.headers) as client,
        ):
            body = io.BytesIO(json.dumps({"model": "m"} | more).encode())
            served.seat.bodies.limits = served.seat.bodies.limits._replace(body=1 << 23)
            here, all_in_all = time.thread_time(), time.process_time()
            async with client.post(f"{served.url}/v1/chat/completions", data=body) as response:
                assert response.status == (200 if "metadata" in more else 400)
            here, all_in_all = time.thread_time() - here, time.process_time() - all_in_all
            assert here < 0.4 * all_in_all, (here, all_in_all)

    asyncio.run(run())


@pytest.mark.parametrize("many", [0, MANY])
def test_a_text_of_many_values_is_read_as_any_other(monkeypatch, many):
    monkeypatch.setattr(offloading, "MANY", many)
    values = [{"a": n, "é": [None, True, -1.5e3, '\\ " \u2028'], "b": {}, "c": []} for n in range(3)]
    assert read_json(json.dumps(values)) == read_json(json.dumps(values, indent=1)) == values
    for broken in ("[1, NaN]", "[-Infinity]", '{"a": 1,}', "[1] 2", '{"a"}', "["):
        with pytest.raises(ValueError, match=r"."):
            read_json(broken)


def test_the_clock_of_a_reply_begins_when_the_engine_is_asked(renderer, monkeypatch):
    async def run():
        session, engine, _ = session_of(renderer, lambda text: "yes", limits=SessionLimits(reply_s=0.05))
        start = renderer.start

        def slow(*given):
            time.sleep(0.2)
            return start(*given)

        async def answers_when_asked():
            await engine.started.wait()
            engine.go.set()

        monkeypatch.setattr(renderer, "start", slow)
        engine.go.clear()
        soon = asyncio.create_task(answers_when_asked())
        answered = await ask(session, user("x" * 2 * SHORT), size=2 * SHORT)
        assert (answered.message.content, session.fault, await soon) == ("yes", "", None)
        engine.go.clear()
        with pytest.raises(RefusedError, match=r"more than 0\.05 s"):
            await ask(session, user("never"))

    asyncio.run(run())


def test_counting_tokens_is_bounded_as_asking_is(serve):
    async def run():
        limits = SessionLimits(per_minute=3, calls=1)
        async with (
            serve(lambda text: "yes", limits=limits) as served,
            aiohttp.ClientSession(headers=served.headers) as client,
        ):
            url, body = f"{served.url}/v1/messages", {"model": "m", "max_tokens": 9, "messages": HI}
            found = []
            for path in ("", "/count_tokens", "/count_tokens", "/count_tokens"):
                async with client.post(url + path, json=body) as response:
                    found.append(response.status)
            assert found == [200, 200, 200, 429]
            served.seat.session.close("It is over.")
            async with client.post(f"{url}/count_tokens", json=body) as response:
                assert response.status == 410

    asyncio.run(run())


def test_streams_whose_clients_hang_up_leave_no_traceback(serve, monkeypatch, caplog):
    monkeypatch.setattr(server, "WAITING_S", 0.01)

    async def run():
        async with serve(lambda text: "yes") as served:
            served.engine.go.clear()
            for n in range(3):
                async with aiohttp.ClientSession(headers=served.headers) as client:
                    body = {"model": "m", "stream": True, "messages": HI, "user": str(n)}
                    async with client.post(f"{served.url}/v1/chat/completions", json=body) as response:
                        assert b"waiting" in await response.content.readline()
            await asyncio.sleep(0.1)
            served.engine.go.set()
            while served.seat.session.busy:
                await asyncio.sleep(0.01)

    with caplog.at_level(logging.ERROR):
        asyncio.run(run())
    assert caplog.records == []
