"""A program as an agent: what is run for each episode, with what it needs, and how its end is told.

It finds the policy where its SDK looks (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``, ``ANTHROPIC_BASE_URL``,
``ANTHROPIC_API_KEY``), the environment's tools at ``MCP_SERVER_URL`` (with the same key) or, without MCP, at
``SESSION_URL`` (``GET /tools``, ``POST /act``), and the task on its standard input, or where ``{prompt}`` stands in its
command. It sees nothing else of this process's environment that is secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import pydantic

from turnwise.agents.core import Outcome
from turnwise.agents.execution.calls import Fault
from turnwise.agents.gateway.world import World
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError
from turnwise.secrets import public_environment, redact
from turnwise.tools.core import ToolError
from turnwise.tools.owner import mark

PROMPT = "{prompt}"
KEPT = 64 * 1024
"""Bytes of what a program writes that are kept."""
FLOOD = 16 * 2**20
"""Bytes after which a program that writes is ended."""
GRACE_S = 2.0
"""How long a program may take to end by itself once its episode is over."""
NOT_STARTED = (126, 127)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AgentProgram:
    """How an agent's program is run.

    Attributes:
        command: the program and its arguments; ``{prompt}`` stands for the task.
        workdir: where it runs.
        env: variables beside those of the module's description.
        timeout: seconds of an episode.
        calls: replies that it may get in an episode.
        answer: what it leaves behind for the environment: nothing, or its standard output, which is said at its end.
        prompt: how it is told its task: as text, or as JSON, a list of chat messages.
        plain_words: whether it is offered the tools ``say`` and ``task`` beside those of the environment; where that has none,
            it is offered them in any case.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    command: tuple[str, ...]
    workdir: str = "."
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float = 600.0
    calls: int = 200
    answer: Literal["none", "stdout"] = "none"
    prompt: Literal["text", "messages"] = "text"
    plain_words: bool = False

    def check(self) -> None:
        """Refuse what could never run.

        Raises:
            TurnwiseError: with the remedy.
        """
        if not self.command:
            raise TurnwiseError("The agent has no command.", "Give the program and its arguments.")
        if not (self.timeout > 0 and self.calls > 0):
            raise TurnwiseError(
                f"The agent has {self.timeout:g} s and {self.calls} calls.", "Give more than 0 of both."
            )
        folder = Path(self.workdir).expanduser()
        if not folder.is_dir():
            raise TurnwiseError(
                f"The agent's folder {self.workdir} is not there.", "Make it, or give another."
            )
        if shutil.which(self.command[0], path=_path(self.env)) is None:
            local = folder / self.command[0]
            if not (local.is_file() and os.access(local, os.X_OK)):
                raise TurnwiseError(
                    f"The agent's program {self.command[0]!r} is not found.",
                    "Give its path, or install it where PATH leads to.",
                )


def program_of(data: Any, where: str) -> AgentProgram:
    """A program from plain values.

    Raises:
        TurnwiseError: a key is unknown or has a wrong value.
    """
    try:
        return _CHECKED.validate_python(data)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        known = ", ".join(AgentProgram.__dataclass_fields__)
        raise TurnwiseError(f"{where}: {key}: {first['msg']}.", f"An agent has {known}.") from None


_CHECKED = pydantic.TypeAdapter(AgentProgram)


class Exited(NamedTuple):
    """How a program ended. ``why`` is the first of these that holds: time, output, memory, its exit."""

    code: int
    why: Literal["exit", "timeout", "flood", "memory"]
    stdout: str
    stderr: str


def session_environment(program: AgentProgram, url: str, key: str) -> dict[str, str]:
    """The variables that a program is given beside PATH and the like."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": key,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "MCP_SERVER_URL": f"{url}/mcp",
        "SESSION_URL": url,
        **program.env,
    }


def with_prompt(program: AgentProgram, prompt: str) -> list[str]:
    """The command, with the task in its place."""
    return [word.replace(PROMPT, prompt) for word in program.command]


async def run_here(program: AgentProgram, prompt: str, url: str, key: str) -> Exited:
    """Run a program as this user, in a group of processes that is killed at its end with all that it started.

    Raises:
        Fault: it cannot be started.
    """
    given = session_environment(program, url, key)
    try:
        process = await asyncio.create_subprocess_exec(
            *with_prompt(program, prompt),
            cwd=Path(program.workdir).expanduser(),
            env=public_environment() | given | mark(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Fault(Outcome.INFRA_ERROR, f"the agent's program cannot be started: {error}") from error
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    flooded = asyncio.Event()
    outputs = [_Output(stream, flooded) for stream in (process.stdout, process.stderr)]
    reading = [asyncio.create_task(output.read()) for output in outputs]
    timed_out = False
    try:
        async with asyncio.timeout(program.timeout):
            with contextlib.suppress(ConnectionError):
                process.stdin.write(prompt.encode())
                await process.stdin.drain()
            process.stdin.close()
            await _first(process.wait(), flooded.wait())
    except TimeoutError:
        timed_out = True
    finally:
        _kill_group(process.pid)
        await process.wait()
        await asyncio.wait(reading, timeout=GRACE_S)
        for one in reading:
            one.cancel()
    why = "timeout" if timed_out else "flood" if flooded.is_set() else "exit"
    return Exited(process.returncode or 0, why, *(output.text for output in outputs))


async def _first(*waiting: Coroutine[Any, Any, object]) -> None:
    """Wait until one of several things happens."""
    tasks = [asyncio.create_task(one) for one in waiting]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


class _Output:
    """What a program writes: the end of it is kept, all of it is read, so that its pipe never fills."""

    def __init__(self, stream: asyncio.StreamReader, flooded: asyncio.Event) -> None:
        self._stream, self._flooded = stream, flooded
        self._kept = b""

    async def read(self) -> None:
        total = 0
        while part := await self._stream.read(1 << 16):
            self._kept, total = (self._kept + part)[-KEPT:], total + len(part)
            if total > FLOOD:
                self._flooded.set()

    @property
    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


async def conclude(program: AgentProgram, world: World, done: Exited, cut: EndReason | None) -> EndReason:
    """How an episode ends whose program ended; what it leaves behind is said to the environment first.

    Raises:
        Fault: the program never ran.
    """
    if done.code in NOT_STARTED and done.why == "exit":
        why = f"the agent's program cannot be run (exit code {done.code}): {done.stderr[-300:].strip()}"
        raise Fault(Outcome.INFRA_ERROR, why)
    if done.code and done.why == "exit":
        _logger.warning(
            "an agent's program ended with exit code %d: %s", done.code, redact(done.stderr[-300:]).strip()
        )
    if done.why == "timeout":
        return EndReason.TIME_LIMIT
    if done.why in ("flood", "memory"):
        return EndReason.FAILED
    if program.answer == "stdout" and done.code == 0 and done.stdout.strip():
        with contextlib.suppress(ToolError):
            result = await world.act(Message("assistant", done.stdout.strip()))
            if result.end is not None:
                return result.end
    return cut or EndReason.GAVE_UP


def _path(env: Mapping[str, str]) -> str | None:
    return env.get("PATH") or os.environ.get("PATH")
