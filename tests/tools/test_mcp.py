"""MCP in and out, with real server processes: ours over stdio and HTTP, a third party's, and servers that fail."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lazily import needs

from turnwise.envs.mcp.serve import EpisodeToolbox
from turnwise.envs.registry import get_suite, make, suite_task
from turnwise.errors import InfraError
from turnwise.tasks.core import Split
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.mcp_client import HttpServer, McpConnection, Server, StdioServer

needs("mcp")
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
        McpConnection(server, timeout=120)
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


@pytest.mark.slow
def test_a_server_that_dies_or_hangs_is_a_fault_of_the_world() -> None:
    with McpConnection(StdioServer((sys.executable, "-c", DYING)), timeout=120) as connection:
        assert connection.call(ToolCall("add", {"a": 2})).text == "3"
        with pytest.raises(ToolError, match="Usage: add"):
            connection.call(ToolCall("add", {"a": "two"}))
        with pytest.raises(InfraError, match="did not answer 'die'"):
            connection.call(ToolCall("die", {}))
    with McpConnection(StdioServer((sys.executable, "-c", DYING)), timeout=120) as connection:
        connection.timeout = 0.5
        with pytest.raises(InfraError, match="did not answer 'sleep'"):
            connection.call(ToolCall("sleep", {}))


FLOODING = (
    """
import sys, threading
def flood():
    while True:
        sys.stderr.write("flood" * 10_000)
threading.Thread(target=flood, daemon=True).start()
"""
    + DYING
)


def test_a_server_that_floods_its_stderr_is_heard_and_nothing_of_it_piles_up() -> None:
    with McpConnection(StdioServer((sys.executable, "-c", FLOODING)), timeout=120) as connection:
        assert connection.call(ToolCall("add", {"a": 2})).text == "3"
        assert 0 < len(connection._stderr.text()) <= 2000
        with pytest.raises(InfraError, match="did not answer 'die'") as caught:
            connection.call(ToolCall("die", {}))
        assert "flood" in caught.value.remedy
        assert len(caught.value.remedy) < 600


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


@pytest.mark.slow
def test_our_episode_over_stdio(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    with McpConnection(StdioServer((*SHOP, "--result", str(result)))) as connection:
        with pytest.raises(ToolError, match=r"There is no tool 'serch'\. Did you mean 'search'"):
            connection.call(ToolCall("serch", {}))
        assert "[the episode is over: solved]" in play_gold(connection)
        with pytest.raises(ToolError, match="The episode is over"):
            connection.call(ToolCall("search", {"query": "x"}))
    found = json.loads(result.read_text())
    assert (found["end"], found["score"]) == ("solved", 1.0)
    assert found["reason"] == "the environment ended the episode"
    assert found["turns"] > 1


def _wait_for(file: Path) -> dict[str, object]:
    for _ in range(200):
        if file.exists():
            return json.loads(file.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{file} was never written")


@pytest.mark.slow
def test_an_agent_that_leaves_early_has_a_result(tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    with McpConnection(StdioServer((*SHOP, "--result", str(result)))) as connection:
        connection.call(ToolCall("search", {"query": "shoes"}))
    found = _wait_for(result)
    assert (found["end"], found["score"], found["turns"]) == ("gave_up", 0.0, 1)
    assert found["reason"] in ("the agent left before the episode ended", "the server was stopped by SIGTERM")


def _heeds(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal, which Python itself sets for none but SIGINT."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_stopped_has_a_result(tmp_path: Path, number: signal.Signals) -> None:
    result = tmp_path / "result.json"
    program = f"from turnwise.envs.mcp import serve\nserve.main({['shop/easy', '--result', str(result)]!r})"
    heed = ["env", "--default-signal=INT"]
    with subprocess.Popen([*heed, sys.executable, "-c", program], stdin=-1, stdout=-1) as process:
        while not _heeds(process.pid, signal.SIGHUP):  # the last of those that are set
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(120) == 128 + number
    assert json.loads(result.read_text())["reason"] == f"the server was stopped by {number.name}"


def test_an_environment_that_fails_is_no_score(tmp_path: Path) -> None:
    suite = get_suite("shop/easy")
    env, result = make(suite.env), tmp_path / "result.json"
    toolbox = EpisodeToolbox(env, suite_task(suite, Split.TEST, 3), result=result)

    def broken(state: object, action: object) -> None:
        raise KeyError("no such shelf")

    env.transition = broken
    with pytest.raises(KeyError):
        toolbox.call(ToolCall("search", {"query": "shoes"}))
    found = json.loads(result.read_text())
    assert (found["end"], found["score"]) == (None, None)
    assert "no such shelf" in found["reason"]
    assert "test_mcp.py" in found["reason"]
    toolbox.stop("later")
    assert json.loads(result.read_text()) == found
    with pytest.raises(ToolError, match="The episode is over: KeyError"):
        toolbox.call(ToolCall("search", {"query": "shoes"}))
