"""A process with many episodes has more than 1,024 files open: what waits for a pipe must work there too."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from lazily import needs

from turnwise.agents.gateway.launching import Launcher, ProgramJob
from turnwise.tools.core import ToolCall
from turnwise.tools.line_process import LineProcess
from turnwise.tools.mcp_client import McpConnection, StdioServer
from turnwise.tools.tail import Tail

ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "value": asked["do"]}), flush=True)
"""


@pytest.fixture(autouse=True)
def many_files() -> Iterator[None]:
    held: list[int] = []
    while not held or held[-1] < 1100:
        held.append(os.open(os.devnull, os.O_RDONLY))
    yield
    for descriptor in held:
        os.close(descriptor)


def test_a_program_is_asked_and_its_errors_are_read() -> None:
    process = LineProcess("the echo", [sys.executable, "-S", "-c", ECHO])
    try:
        assert process.ask({"do": "say"}, 20) == "say"
    finally:
        process.close()


def test_a_tail_is_read() -> None:
    tail = Tail()
    assert tail.file.fileno() > 1024
    print("the last words", file=tail.file, flush=True)
    tail.close()
    assert tail.text() == "the last words\n"


def test_a_server_of_tools_is_called() -> None:
    needs("mcp")
    odd = StdioServer((sys.executable, "-S", str(Path(__file__).with_name("tools") / "odd_server.py")))
    with McpConnection(odd, timeout=20) as connection:
        assert connection.call(ToolCall("noise", {})).text == "seven"


def test_programs_are_started_one_after_the_other(tmp_path: Path) -> None:
    launcher = Launcher()
    job = ProgramJob(("cat",), str(tmp_path), dict(os.environ))
    said = [asyncio.run(launcher.run(job, word, 20)).stdout for word in (b"one", b"two")]
    launcher.close()
    assert said == ["one", "two"]
