"""A program as an agent: what is run for each episode, with what it needs, and how its end is told.

It finds the policy where its SDK looks (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``, ``ANTHROPIC_BASE_URL``,
``ANTHROPIC_API_KEY``), the environment's tools at ``MCP_SERVER_URL`` (with the same key) or, without MCP, at
``SESSION_URL`` (``GET /tools``, ``POST /act``), and the task on its standard input, or where ``{prompt}`` stands in its
command. It sees nothing else of this process's environment that is secret.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pydantic

from turnwise.agents.execution.calls import Fault, outcome_of
from turnwise.agents.gateway.launching import Exited, Launcher, ProgramJob, script_of
from turnwise.agents.gateway.program_episode import ProgramEpisode
from turnwise.agents.gateway.sandboxed import ProgramSandbox, SessionDoor, run_contained
from turnwise.agents.gateway.sessions import AgentSession, SessionLimits
from turnwise.envs.core import EndReason
from turnwise.envs.messages import Message
from turnwise.errors import TurnwiseError
from turnwise.fault import Party, of_exit
from turnwise.secrets import public_environment, redact
from turnwise.tools.core import ToolError
from turnwise.tools.owner import mark
from turnwise.type_words import listed, wanted_kind

PROMPT = "{prompt}"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class AgentProgram:
    """An agent's program, and the way in which it is run.

    Attributes:
        command: the program and its arguments; ``{prompt}`` stands for the task.
        workdir: where it runs.
        env: variables beside those of the module's description.
        timeout: seconds of an episode.
        calls: replies that it may get in an episode.
        tokens: that may be sampled for it in an episode; None: any number.
        at_once: replies that it may wait for at a time; it is told to come again (429) beyond.
        reply_s: seconds after which a reply is given up: it is told (504), and the episode is an ``infra_error`` unless it asks
            again and is answered.
        answer: what it leaves behind for the environment: nothing, or its standard output, which is said at its end.
        prompt: how it is told its task: as text, or as JSON, a list of chat messages.
        plain_words: whether it is offered the tools ``say`` and ``task`` beside those of the environment; where that has none,
            it is offered them in any case.
        preload: modules that a script of Python imports: they are imported once, by a process of which each episode's program is
            a fork. They must not start threads.
        sandbox: where it runs; none: as this user, not contained.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    command: tuple[str, ...]
    workdir: str = "."
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float = 600.0
    calls: int = 200
    tokens: int | None = None
    at_once: int = 64
    reply_s: float = 300.0
    answer: Literal["none", "stdout"] = "none"
    prompt: Literal["text", "messages"] = "text"
    plain_words: bool = False
    preload: tuple[str, ...] = ()
    sandbox: ProgramSandbox | None = None

    def check(self) -> None:
        """Refuse what could never run.

        Raises:
            TurnwiseError: with the remedy.
        """
        if not self.command:
            raise TurnwiseError("The agent has no command.", "Give the program and its arguments.")
        for name in ("timeout", "calls", "tokens", "at_once", "reply_s"):
            most = getattr(self, name)
            if most is not None and not most > 0:
                raise TurnwiseError(f"The agent's {name} is {most:g}.", "Give more than 0.")
        if self.preload and script_of(self.command) is None:
            raise TurnwiseError(
                f"preload is for scripts of Python, and the agent's command is {' '.join(self.command)[:80]!r}.",
                "Leave preload out, or write [python3, SCRIPT.py, …].",
            )
        if self.preload and self.sandbox:
            raise TurnwiseError(
                "preload starts forks of one process, and a sandbox has processes of its own.",
                "Leave one of preload and sandbox out.",
            )
        folder = self.folder
        if not folder.is_dir():
            raise TurnwiseError(
                f"The agent's folder {self.workdir} is not there.", "Make it, or give another."
            )
        if self.sandbox is not None:
            self.sandbox.check(self.command, folder)
            return
        if shutil.which(self.command[0], path=_path(self.env)) is None:
            _check_local(self.command[0], folder / self.command[0])

    @property
    def limits(self) -> SessionLimits:
        """The limits of its session."""
        tokens = float("inf") if self.tokens is None else self.tokens
        return SessionLimits(self.calls, tokens, self.timeout, at_once=self.at_once, reply_s=self.reply_s)

    @property
    def folder(self) -> Path:
        """The folder in which it runs, or from which the files of its sandbox are taken."""
        return Path(self.workdir).expanduser().resolve()


def _check_local(name: str, place: Path) -> None:
    """Refuse a program that PATH does not lead to, unless its file may be executed.

    Raises:
        TurnwiseError: there is none, or it may not.
    """
    if place.is_dir():
        raise TurnwiseError(f"The agent's program {name!r} is a folder.", "Give the program in it.")
    if not place.is_file():
        raise TurnwiseError(
            f"The agent's program {name!r} is not found.", "Give its path, or install it where PATH leads to."
        )
    if not os.access(place, os.X_OK):
        raise TurnwiseError(
            f"The agent's program {name!r} may not be executed: its file lacks the permission.",
            f"Allow it (chmod +x {shlex.quote(str(place))}), or give its interpreter before it.",
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
        key = ".".join(str(step) for step in first["loc"]) or "it"
        wanted = wanted_kind(first)
        said = (
            f"must be {wanted}, and {first['input']!r} is given"
            if wanted != "something else"
            else first["msg"]
        )
        if first["type"] == "missing":
            said = "must be given"
        raise TurnwiseError(f"{where}: {key} {said}.", _remedy_for(first)) from None


def _remedy_for(detail: Mapping[str, Any]) -> str:
    if wanted_kind(detail) == "a list" and isinstance(detail["input"], str):
        return f"Write {detail['loc'][-1]}: {listed(detail['input'])}."
    return f"An agent has {', '.join(field.name for field in dataclasses.fields(AgentProgram))}."


_CHECKED = pydantic.TypeAdapter(AgentProgram)


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


def launcher_of(program: AgentProgram) -> Launcher:
    """Return the launcher that starts a program, again and again."""
    python = script_of(program.command) if program.preload else None
    return Launcher(python[0], program.preload, program.env) if python else Launcher()


async def run_program(
    launcher: Launcher, program: AgentProgram, prompt: str, url: str, key: str, door: SessionDoor | None
) -> Exited:
    """Run a program in its sandbox, which has the door, or as this user; at its end all that it started is killed.

    Raises:
        Fault: it cannot be started.
    """
    argv, own = with_prompt(program, prompt), session_environment(program, url, key)
    if program.sandbox is not None:
        assert door is not None
        job = ProgramJob(argv, str(program.folder), own)
        return await run_contained(program.sandbox, job, prompt.encode(), program.timeout, door)
    script = script_of(argv) if program.preload else None
    env = public_environment() | own | mark()
    job = ProgramJob(script[1] if script else argv, str(program.folder), env, script is not None)
    return await launcher.run(job, prompt.encode(), program.timeout)


async def conclude(program: AgentProgram, play: ProgramEpisode, done: Exited) -> EndReason:
    """Return the end of an episode whose program ended; what it leaves behind is sent to the environment first.

    Raises:
        Fault: the program ended in failure before it was given a reply or acted, so that nothing was measured.
    """
    session = play.session
    if done.why == "timeout":
        return EndReason.TIME_LIMIT
    if done.why == "flood":
        return EndReason.FAILED
    play.history.metrics["exit_code"] = done.code
    blame = of_exit(done.code, acted=play.acts > 0, replies=session.counts.replies)
    if blame is not None and blame.party is Party.INFRASTRUCTURE:
        raise Fault(outcome_of(blame), never_ran(done, session))
    if blame is not None:
        _logger.warning(
            "an agent's program ended with exit code %d: %s", done.code, redact(done.stderr[-300:]).strip()
        )
    if program.answer == "stdout" and done.code == 0 and done.stdout.strip():
        with contextlib.suppress(ToolError):
            result = await play.act(Message("assistant", done.stdout.strip()))
            if result.end is not None:
                return result.end
    return session.cut or EndReason.GAVE_UP


def never_ran(done: Exited, session: AgentSession) -> str:
    """Describe the end of a program that was given no reply and did nothing."""
    last = next((line.strip() for line in reversed(done.stderr.splitlines()) if line.strip()), "")
    refused = session.counts.refused
    asked = f", and {refused} requests were refused, last: {session.refused_last}" if refused else ""
    how = f"exit code {done.code}{asked}"
    return (
        f"the agent's program was given no reply and did nothing ({how}): {last[-300:] or 'it says nothing'}"
    )


def _path(env: Mapping[str, str]) -> str | None:
    return env.get("PATH") or os.environ.get("PATH")
