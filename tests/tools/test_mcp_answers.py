"""Whatever an MCP server answers is an answer: it is told to the agent, and no episode is lost by it."""

from __future__ import annotations

import base64
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lazily import needs

from turnwise.envs.core import EndReason
from turnwise.envs.mcp.env import McpEnv
from turnwise.envs.messages import Image, Message
from turnwise.errors import InfraError
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolCall, ToolError
from turnwise.tools.mcp_client import McpAnswer, McpConnection, McpPicture, StdioServer

needs("mcp")
ODD = StdioServer((sys.executable, "-S", str(Path(__file__).with_name("odd_server.py"))))
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def odd() -> Iterator[McpConnection]:
    with McpConnection(ODD, timeout=20) as connection:
        yield connection


def test_results_that_break_the_promise_of_their_schema_are_told_as_they_are(odd: McpConnection) -> None:
    assert odd.call(ToolCall("promised", {})).text == "seven"
    assert odd.call(ToolCall("other", {})) == McpAnswer("seven", {"n": "no number"})
    assert odd.call(ToolCall("nonsense_schema", {})).text == "seven"


@pytest.mark.parametrize("code", [-32000, -32001, -32002, 404, 1, -32603])
def test_an_error_with_any_code_is_told_to_the_agent(odd: McpConnection, code: int) -> None:
    with pytest.raises(ToolError, match="No such file"):
        odd.call(ToolCall("error", {"code": code}))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("half", "a\ufffdb"),
        ("bytes", "Z\ufffdrich"),
        ("noise", "seven"),
        ("no_picture", "[image: image/png]"),
    ],
)
def test_text_that_is_not_unicode_is_read_at_once(odd: McpConnection, name: str, text: str) -> None:
    began = time.monotonic()
    assert odd.call(ToolCall(name, {})).text == text
    assert time.monotonic() - began < odd.timeout / 2


def test_an_answer_without_a_form_is_the_calls_fault_and_the_connection_lives(odd: McpConnection) -> None:
    with pytest.raises(ToolError, match="answer to shapeless cannot be read"):
        odd.call(ToolCall("shapeless", {}))
    assert odd.call(ToolCall("promised", {})).text == "seven"


def test_one_tool_without_a_usable_schema_costs_no_other(odd: McpConnection) -> None:
    tools = {one.spec.name: one for one in odd.tools()}
    assert tools["null"].validate(ToolCall("null", {"a": 1})) == {"a": 1}
    assert '"type": 7' in tools["unusable"].spec.description
    assert tools["unusable"].function(**tools["unusable"].validate(ToolCall("unusable", {"n": 1}))) == "seven"


def test_a_server_that_dies_or_is_silent_is_still_a_fault_of_the_world() -> None:
    for name in ("silent", "die"):
        with McpConnection(ODD, timeout=20) as connection:
            connection.timeout = 0.3
            with pytest.raises(InfraError, match=f"did not answer '{name}'"):
                connection.call(ToolCall(name, {}))


class OddTasks(McpEnv):
    server = ODD
    offered = ("finish", "server_finish", "picture")

    def judge(self, task: Task, folder: Path, answer: str) -> float:
        return float(answer == "done")


def played(env: McpEnv, *calls: ToolCall) -> list[Message]:
    env.reset(seed=0, options={"task": Task("test/Odd-v0", "Go.", {})})
    step = env.step(Message("assistant", "", calls))
    env.close()
    return [*step.observation, Message("user", str(step.info.get("end")))]


def test_a_tool_of_the_server_that_is_called_finish_has_a_name_of_its_own() -> None:
    env = OddTasks()
    names = [one.spec.name for one in env.tools]
    assert names == ["server_server_finish", "server_finish", "picture", "finish"]
    said = played(
        env,
        ToolCall("server_server_finish", {}, "a"),
        ToolCall("server_finish", {}, "b"),
        ToolCall("finish", {"answer": "done"}, "c"),
    )
    assert [message.content for message in said[:2]] == ["finish was called", "server_finish was called"]
    assert said[-1].content == str(EndReason.SOLVED)


def test_pictures_reach_policies_that_see_and_are_told_to_others(odd: McpConnection) -> None:
    answer = odd.call(ToolCall("picture", {}))
    assert answer.pictures == (McpPicture(PIXEL, "image/png"),)
    seen = played(OddTasks(image=True), ToolCall("picture", {}, "a"))[0]
    assert (seen.images, seen.content) == ((Image(PIXEL),), "seven\n[image: image/png]")
    assert played(OddTasks(), ToolCall("picture", {}, "a"))[0].images == ()
