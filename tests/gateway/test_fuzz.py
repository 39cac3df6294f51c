"""Bodies, paths and headers that no client should send: each gets an answer of its own API, and none is taken for our failure."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import aiohttp
import pytest

import turnwise
from turnwise.agents.hosting.routes import add_routes
from turnwise.agents.hosting.session_host import Host, HostOptions
from turnwise.doors import Door
from turnwise.envs.registry import get_suite
from turnwise.tasks.core import Split

TOKEN = "the-token-of-this-test"
ROUNDS = int(os.environ.get("TURNWISE_FUZZ_ROUNDS", "120"))
CALL = {"id": "c", "type": "function", "function": {"name": "search", "arguments": '{"query": "x"}'}}
TOOL = {
    "name": "f",
    "description": "d",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
TALK = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "1"},
    {"role": "user", "content": "go on"},
]
ITEMS = [
    {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "1"},
]
BLOCKS = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "1"}]}]},
]  # fmt: skip
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "search", "arguments": {"query": "x"}},
}
BODIES: dict[str, dict[str, Any]] = {
    "v1/chat/completions": {"model": "m", "messages": TALK, "tools": [{"type": "function", "function": TOOL}], "max_tokens": 9,
                            "stream": False, "stream_options": {"include_usage": True}, "temperature": 1, "n": 1, "stop": ["x"],
                            "tool_choice": "auto", "response_format": {"type": "text"}, "reasoning_effort": "low"},
    "v1/responses": {"model": "m", "input": ITEMS, "tools": [{"type": "function", **TOOL}], "instructions": "i", "max_output_tokens": 9,
                     "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}}, "reasoning": {"effort": "low"},
                     "tool_choice": {"type": "function", "name": "f"}, "include": ["reasoning.encrypted_content"], "stream": True},
    "v1/messages": {"model": "m", "max_tokens": 9, "system": [{"type": "text", "text": "s"}], "messages": BLOCKS, "stream": False,
                    "tools": [{"name": "f", "description": "d", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "f"},
                    "thinking": {"type": "enabled", "budget_tokens": 1024}, "output_config": {"effort": "low"}, "stop_sequences": ["x"]},
    "v1/messages/count_tokens": {"model": "m", "messages": BLOCKS, "tools": [{"name": "f", "input_schema": {}}]},
    "act": {"name": "search", "arguments": {"query": "x"}, "id": "c"},
    "mcp": GREETING,
}  # fmt: skip
CONTROL: dict[str, dict[str, Any]] = {
    "": {"index": 3},
    "/ID/reward": {"reward": 0.5, "turn": -1, "id": "x"},
    "/ID/end": {"end": "solved", "rewards": {"outcome": 1, "step": 2}},
}
ODD: list[Any] = [
    None, True, False, 0, -1, 2, 1.5, 1e308, int("9" * 400), "", "x", "\ud800", "\x00", "é\u2028", [], {}, [[]], [None], {"": None}, {"type": "text"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}, {"role": "assistant"}, ["a", 1], "9" * 5000, {"a": {"b": [{}]}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, '{"a":' * 50, {"$ref": "#"}, {"type": "object", "properties": 3},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands within a value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*path, key))


def changed(value: Any, rng: Random) -> Any:
    """The value with something else at some places."""
    value = json.loads(json.dumps(value))
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        found = [one for one in places(value) if one]
        if not found:
            break
        *path, last = rng.choice(found)
        inner = value
        for key in path:
            inner = inner[key]
        what = rng.random()
        if what < 0.15 and isinstance(inner, dict):
            del inner[last]
        elif what < 0.25 and isinstance(inner, dict):
            inner[rng.choice(["x", "name", "type", "content", "id", "tools"])] = copy.deepcopy(
                rng.choice(ODD)
            )
        else:
            inner[last] = copy.deepcopy(rng.choice(ODD))
    return value


def raw(body: Any, rng: Random) -> bytes:
    """The body as it is sent, now and then damaged."""
    text = json.dumps(body).encode()
    if rng.random() < 0.1:
        cut = rng.randrange(len(text) + 1)
        text = (
            text[:cut]
            + rng.choice([b"", b"\xff\xfe", b"NaN", b"[[", b"\x00", b'"'])
            + text[cut + rng.randrange(3) :]
        )
    return text


async def statuses(host: Host, rng: Random, rounds: int) -> dict[str, int]:
    """What so many odd requests were answered that should not be; the session that they are of is healthy in the end."""
    odd: dict[str, int] = {}
    async with aiohttp.ClientSession() as client:

        async def post(url: str, body: bytes, key: str) -> int:
            async with client.post(url, data=body, headers={"Authorization": f"Bearer {key}"}) as response:
                said = await response.read()
                if response.content_type == "application/json":
                    json.loads(said)
                return response.status

        base = f"{host.server.address}/sessions"
        for number in range(rounds):
            hosted = next(iter(host.open_sessions.values()), None) or await host.open(index=number % 5)
            path = rng.choice([*BODIES])
            body = raw(changed(BODIES[path], rng), rng)
            status = await post(f"{base}/{hosted.seat.name}/{path}", body, hosted.seat.key)
            if status >= 500 or hosted.play.session.fault:
                odd[f"{path} {status} {hosted.play.session.fault} {body[:300]!r}"] = status
                hosted.play.session.fault = ""
            path = rng.choice([*CONTROL]).replace("ID", rng.choice([hosted.seat.name, "none"]))
            body = raw(changed(CONTROL["/ID" + path[path.rindex("/") :] if path else ""], rng), rng)
            status = await post(base + path, body, TOKEN)
            if status >= 500 and status != 503:
                odd[f"{path} {status} {body!r}"] = status
    return odd


@pytest.mark.parametrize("policy", ["tokens", "words"])
def test_no_body_is_an_unexpected_error_or_our_failure(renderer, caplog, policy):
    from gateway_kit import AnsweringEngine

    from turnwise.agents.core import Sampling
    from turnwise.agents.policies.model import ModelPolicy

    engine = AnsweringEngine(renderer, lambda text: "fine", context_length=3000)
    player = (
        ModelPolicy(engine, renderer, Sampling(1.0, 1.0, 9))
        if policy == "tokens"
        else turnwise.make_policy("scripted:echo")
    )

    async def run() -> dict[str, int]:
        suite = get_suite("shop/easy")
        host = Host(player, HostOptions(suite, Split.TEST, plain_words=True))
        add_routes(host, lambda: Door("127.0.0.1", host.server.port, TOKEN))
        await host.start()
        try:
            return await statuses(host, Random(f"fuzz {policy}"), ROUNDS)
        finally:
            await host.close()

    with caplog.at_level(logging.ERROR):
        odd = asyncio.run(run())
    assert odd == {}
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"x-api-key: \xff\xfe", 401),
        (b"Authorization: Bearer \xff\xfe", 401),
        (b"Authorization: \xff", 401),
        (b"Host: \xff", 401),
        (b"Content-Length: -5", 400),
        (b"Content-Length: 99999999999999999999", 401),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3", 400),
        (b"Content-Encoding: gzip", 401),
    ],
)
@pytest.mark.parametrize(
    "path", [b"/v1/chat/completions", b"/sessions", b"/sessions/x/act", b"/mcp?index=" + b"9" * 5000]
)
def test_odd_headers_without_a_key_are_turned_away(caplog, line, status, path):
    async def run() -> int:
        host = Host(turnwise.make_policy("scripted:echo"), HostOptions())
        add_routes(host, lambda: Door("127.0.0.1", host.server.port, TOKEN))
        await host.start()
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", host.server.port)
            name = b"" if line.startswith(b"Host") else b"Host: 127.0.0.1:%d\r\n" % host.server.port
            writer.write(b"POST " + path + b" HTTP/1.1\r\n" + name + line + b"\r\n\r\n{}")
            async with asyncio.timeout(20):
                answer = await reader.readline()
            writer.close()
            return int(answer.split()[1])
        finally:
            await host.close()

    with caplog.at_level(logging.ERROR):
        found = asyncio.run(run())
    assert found in (status, 400, 401, 404, 421)
    assert [record.getMessage() for record in caplog.records] == []
