"""MCP in and out, with real server processes: ours over stdio and HTTP, a third party's, and servers that fail."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.errors import InfraError
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.mcp_client import HttpServer, McpConnection, Server, StdioServer

pytest.importorskip("mcp")
TIME = StdioServer((sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"))
SHOP = (sys.executable, "-m", "turnwise.envs.mcp.serve", "shop/easy", "--split", "test", "--index", "3")


@pytest.fixture(scope="module")
def clock() -> Iterator[McpConnection]:
    with McpConnection(TIME) as connection:
        yield connection


def test_a_third_partys_tools_are_tools(clock: McpConnection) -> None:
    tools = {one.spec.name: one for one in clock.tools()}
    assert set(tools) == {"get_current_time", "convert_time"}
    convert = tools["convert_time"]
    asked = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}
    said = convert.function(**convert.validate(ToolCall("convert_time", asked)))
    assert json.loads(said)["time_difference"] == "-9.0h"
    with pytest.raises(ToolError, match="'time' is a required property"):
        convert.validate(ToolCall("convert_time", {"source_timezone": "UTC", "target_timezone": "UTC"}))
    with pytest.raises(ToolError, match="is not of type 'string'"):
        convert.validate(ToolCall("convert_time", {**asked, "time": 12}))


def test_what_the_server_refuses_is_an_error_of_the_model(clock: McpConnection) -> None:
    asked = {"source_timezone": "Mars/Base", "time": "12:00", "target_timezone": "UTC"}
    with pytest.raises(ToolError, match="Mars/Base"):
        clock.call(ToolCall("convert_time", asked))
    with pytest.raises(ToolError, match="no_such_tool"):
        clock.call(ToolCall("no_such_tool", {}))


@pytest.mark.parametrize(
    "server",
    [
        StdioServer((sys.executable, "-c", "import sys; sys.exit('no key was given')")),
        StdioServer(("/no/such/program",)),
        HttpServer("http://127.0.0.1:9/mcp"),
    ],
)
def test_a_server_that_does_not_start_is_a_fault_of_the_world(server: Server) -> None:
    with pytest.raises(InfraError, match="cannot be reached") as caught:
        McpConnection(server, timeout=20)
    if isinstance(server, StdioServer) and "-c" in server.command:
        assert "no key was given" in caught.value.remedy


DYING = """
import sys
from turnwise.tools.core import tool
from turnwise.tools.mcp_server import PlainToolbox, serve_stdio
def die() -> str:
    import os; os._exit(3)
def sleep() -> str:
    import time; time.sleep(2); return ""
def add(a: int, b: int = 1) -> int:
    "Add."
    return a + b
serve_stdio(PlainToolbox("odd", [tool(die), tool(sleep), tool(add)]))
"""


def test_a_server_that_dies_or_hangs_is_a_fault_of_the_world() -> None:
    with McpConnection(StdioServer((sys.executable, "-c", DYING)), timeout=20) as connection:
        assert connection.call(ToolCall("add", {"a": 2})).text == "3"
        with pytest.raises(ToolError, match="Usage: add"):
            connection.call(ToolCall("add", {"a": "two"}))
        with pytest.raises(InfraError, match="did not answer 'die'"):
            connection.call(ToolCall("die", {}))
    with McpConnection(StdioServer((sys.executable, "-c", DYING)), timeout=20) as connection:
        connection.timeout = 0.5
        with pytest.raises(InfraError, match="did not answer 'sleep'"):
            connection.call(ToolCall("sleep", {}))


def play_gold(connection: McpConnection) -> str:
    """The gold episode of the served task, its actions found in an environment of our own."""
    task = suite_task(get_suite("shop/easy"), Split.TEST, 3)
    assert task.prompt in connection.instructions
    assert connection.call(ToolCall("task", {})).text == connection.instructions
    env = make("turnwise/Shop-v0")
    env.reset(seed=0, options={"task": task})
    said = ""
    while env.snapshot().end is None:
        action = env.gold(env.state)
        step = env.step(action)
        assert isinstance(action, str)
        verb, _, argument = action.partition("[")
        spec = next(spec for spec in connection.specs() if spec.name == verb)
        name = spec.argument_names[0]
        said = connection.call(ToolCall(verb, {name: argument.removesuffix("]")})).text
        assert step.observation[-1].content in said
    return said


def test_our_episode_over_stdio(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    with McpConnection(StdioServer((*SHOP, "--result", str(result)))) as connection:
        with pytest.raises(ToolError, match=r"There is no tool 'serch'\. Did you mean 'search'"):
            connection.call(ToolCall("serch", {}))
        assert "[the episode is over: solved]" in play_gold(connection)
        with pytest.raises(ToolError, match="The episode is over"):
            connection.call(ToolCall("search", {"query": "x"}))
    assert json.loads(result.read_text())["score"] == 1.0


def test_our_episode_over_http() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*SHOP, "--http", str(port)])
    try:
        connection = _connect(HttpServer(f"http://127.0.0.1:{port}/mcp"))
        assert "[the episode is over: solved]" in play_gold(connection)
        connection.close()
    finally:
        process.terminate()
        process.wait(10)


def _connect(server: HttpServer) -> McpConnection:
    for _ in range(100):
        try:
            return McpConnection(server, timeout=20)
        except InfraError:
            time.sleep(0.1)
    raise AssertionError("the server never came up")
