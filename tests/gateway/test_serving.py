"""`turnwise serve`: a suite for agents with models of their own, one episode for each connection by MCP."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys

import aiohttp
import pytest

import turnwise
from turnwise.agents.gateway.sessions import SessionLimits
from turnwise.agents.hosting.environments import ID, NoModel, add_mcp
from turnwise.agents.hosting.routes import add_routes
from turnwise.agents.hosting.session_host import Host, HostOptions
from turnwise.agents.log.episode_log import EpisodeLog, LogReader
from turnwise.cli.app import run
from turnwise.cli.gateway import _Served
from turnwise.doors import Door
from turnwise.envs.core import EndReason
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.errors import InfraError
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.mcp_client import HttpServer, McpConnection

TOKEN = "the-token-of-this-test"
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


def play_gold(connection: McpConnection, index: int) -> str:
    """Solve the shop's test task of this number, by actions found in an environment of our own."""
    suite = get_suite("shop/easy")
    task = suite_task(suite, Split.TEST, index)
    assert task.prompt in connection.instructions
    env = make(suite.env)
    env.reset(seed=0, options={"task": task})
    said = ""
    while env.snapshot().end is None:
        action = env.gold(env.state)
        assert isinstance(action, str)
        step = env.step(action)
        verb, _, argument = action.partition("[")
        name = next(spec for spec in connection.specs() if spec.name == verb).argument_names[0]
        said = connection.call(ToolCall(verb, {name: argument.removesuffix("]")})).text
        assert step.observation[-1].content in said
    return said


def served(log: EpisodeLog | None = None, **options) -> tuple[Host, list]:
    done = []

    def heard(episode):
        done.append(episode)
        if log is not None:
            log.append(episode)

    suite = get_suite("shop/easy")
    host = Host(NoModel("mine"), HostOptions(suite, Split.TEST, acts_are_turns=True, **options), heard)
    add_routes(host, lambda: Door("127.0.0.1", host.server.port, TOKEN))
    add_mcp(host, lambda: Door("127.0.0.1", host.server.port, TOKEN))
    return host, done


def test_each_connection_is_the_suite_s_next_task_and_counts_however_it_ends(tmp_path):
    def agents(url: str) -> None:
        server = HttpServer(url, {"Authorization": f"Bearer {TOKEN}"})
        with McpConnection(server, timeout=30) as first:
            assert "[the episode is over: solved]" in play_gold(first, 0)
            with pytest.raises(ToolError, match="The episode is over"):
                first.call(ToolCall("search", {"query": "x"}))
        with McpConnection(server, timeout=30) as early:
            assert "search" in [spec.name for spec in early.specs()]
            early.call(ToolCall("search", {"query": "shoes"}))
            with pytest.raises(ToolError, match="Did you mean 'search'"):
                early.call(ToolCall("serch", {}))
        McpConnection(server, timeout=30)  # is never heard of again
        with pytest.raises(InfraError):
            McpConnection(server, timeout=30)
        with pytest.raises(InfraError):
            McpConnection(HttpServer(url), timeout=30)

    async def run():
        with EpisodeLog(tmp_path / "log.jsonl.zst", policy="mine") as log:
            host, done = served(log, episodes=3)
            await host.start()
            await asyncio.to_thread(agents, f"{host.server.address}/mcp")
            assert len(done) == 2
            await host.close()
        return done

    done = asyncio.run(run())
    assert [(one.end, one.score, len(one.trajectory.turns)) for one in done] == [
        (EndReason.SOLVED, 1.0, len(done[0].trajectory.turns)),
        (EndReason.GAVE_UP, 0.0, 1),
        (EndReason.GAVE_UP, 0.0, 0),
    ]
    assert len(done[0].trajectory.turns) > 1
    turnwise.evaluate("shop/easy", "scripted:gold", episodes=3, log=tmp_path / "gold.jsonl.zst")
    gold = {record.episode.task.id: record.episode.seed for record in LogReader(tmp_path / "gold.jsonl.zst")}
    assert {one.task.id: one.seed for one in done} == gold
    assert turnwise.replay(tmp_path / "log.jsonl.zst").ok


def test_what_is_no_client_of_the_protocol_gets_an_error_and_no_episode():
    async def run():
        host, done = served(most=1)
        await host.start()
        url, headers = f"{host.server.address}/mcp", {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession() as client:

            async def status(method="POST", path="", body=GREETING, **more):
                async with client.request(method, url + path, json=body, headers=headers | more) as response:
                    return response.status, response.headers.get(ID, "")

            assert await status(Authorization="Bearer wrong") == (401, "")
            assert await status(Host="evil.example") == (421, "")
            assert await status("GET") == (405, "")
            assert await status(body=GREETING | {"method": "tools/list"}) == (400, "")
            assert await status(body=[GREETING]) == (400, "")
            assert await status(path="?index=-1") == (400, "")
            assert await status(**{ID: "0123456789abcdef"}) == (404, "")
            assert (host.open_sessions, done) == ({}, [])
            found, name = await status(path="?index=7")
            assert (found, [*host.open_sessions]) == (200, [name])
            assert host.open_sessions[name].task == suite_task(get_suite("shop/easy"), Split.TEST, 7)
            assert await status() == (429, "")  # one at a time, here
            assert (
                await status(body={"jsonrpc": "2.0", "method": "notifications/initialized"}, **{ID: name})
            )[0] == 202
            key = host.open_sessions[name].seat.key
            said = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            chat = f"{host.server.address}/sessions/{name}/v1/chat/completions"
            async with client.post(chat, json=said, headers={"Authorization": f"Bearer {key}"}) as response:
                assert (response.status, "no model" in (await response.text())) == (404, True)
            assert await status("DELETE", **{ID: name}) == (200, "")
            assert await status("DELETE", **{ID: name}) == (404, "")
        assert [one.end for one in done] == [EndReason.GAVE_UP]
        await host.close()

    asyncio.run(run())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_stopped_has_statistics_of_those_who_left_and_of_those_who_had_not(tmp_path, number):
    command = [sys.executable, "-c", "from turnwise.cli import main; main()", "serve", "shop/easy", "--json"]
    command += ["--agent", "mine", "--out", str(tmp_path), "--token", TOKEN]
    with subprocess.Popen(
        ["env", "--default-signal=INT", *command], stdout=-1, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        server = HttpServer(process.stderr.readline().split()[0], {"Authorization": f"Bearer {TOKEN}"})
        with McpConnection(server, timeout=60) as first:
            play_gold(first, 0)
        stays = McpConnection(server, timeout=60)
        process.send_signal(number)
        said, _ = process.communicate(timeout=120)
        stays.close()
    assert process.returncode == 0
    for found in (json.loads(said), json.loads((tmp_path / "evaluation.json").read_text())):
        assert (found["policy"], found["episodes"], found["success"]) == ("mine", 2, 0.5)
        assert found["ends"] == {"solved": 1, "gave_up": 1}
    assert len([*LogReader(tmp_path / "episodes.jsonl.zst")]) == 2


def test_the_command_line_bounds_sessions(monkeypatch):
    given = []
    monkeypatch.setattr(
        "turnwise.cli.gateway._serve",
        lambda player, options, place: given.append(options) or _Served(None, [], []),
    )
    words = "gateway --policy scripted:gold --calls 5 --tokens 700 --per-minute 30 --at-once 2 --reply-s 9 --seconds 60"
    assert run([*words.split(), "--json"]) == 0
    assert run(["gateway", "--policy", "scripted:gold", "--json"]) == 0
    bounded, free = (options.limits for options in given)
    assert bounded == SessionLimits(5, 700, 60.0, 30, 2, 9.0)
    assert free == SessionLimits(seconds=3600.0)
