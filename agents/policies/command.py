"""A program as a policy: it is run once per episode, and reaches the model through a gateway of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import yaml

from turnwise.agents.core import History, Outcome, Policy, Reply
from turnwise.agents.execution.calls import Fault, outcome_of
from turnwise.agents.gateway.agent_program import (
    AgentProgram,
    conclude,
    launcher_of,
    never_ran,
    program_of,
    run_program,
)
from turnwise.agents.gateway.launching import Exited, Launcher
from turnwise.agents.gateway.program_episode import ProgramEpisode
from turnwise.agents.gateway.sandboxed import SessionDoor
from turnwise.agents.gateway.server import GatewayServer, Seat
from turnwise.agents.policies.options import PolicyOptions
from turnwise.agents.policies.served.written import conversation
from turnwise.blame import describe
from turnwise.envs.core import EndReason
from turnwise.errors import RunError, TurnwiseError
from turnwise.fault import of_raised
from turnwise.plain_yaml import read_yaml
from turnwise.registry import component
from turnwise.tools.owner import make_folder, remove_folder

IN_VAIN = 8
"""Programs that end without having done anything before an evaluation or a run is stopped, if no other did more."""

_logger = logging.getLogger(__name__)


class _SharedServer:
    """A server for the episodes of one event loop, open as long as there is one."""

    def __init__(self, model: str) -> None:
        self._model, self._users = model, 0
        self._server: asyncio.Future[GatewayServer] | None = None

    async def enter(self) -> GatewayServer:
        self._users += 1
        if self._server is None:
            self._server = asyncio.ensure_future(_started(self._model))
        try:
            return await asyncio.shield(self._server)
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        self._users -= 1
        if not self._users and self._server is not None:
            server, self._server = self._server, None
            with contextlib.suppress(OSError):  # of a server that could not be started
                await (await server).close()


@dataclass
class _Running:
    """An episode's program, where its server is, and what joins it with the episode."""

    play: ProgramEpisode
    server: GatewayServer
    seat: Seat
    door: SessionDoor | None = None
    task: asyncio.Task[None] | None = None


class ProgramPolicy:
    """Plays each episode by a program of its own, whose model is another policy.

    The program's replies and actions become the episode's turns (:mod:`turnwise.agents.gateway.program_episode`). An episode ends when
    its program does (``gave_up``, or ``time_limit`` where it took too long), or when the environment ends it; the program
    is then ended, with all that it started.

    Args:
        model: what the program talks to. It stays open.
        program: what is run.
        name: under which it is reported.
        launcher: starts it, and stays open; one that is closed with the policy unless given.
    """

    def __init__(
        self, model: Policy, program: AgentProgram, *, name: str = "", launcher: Launcher | None = None
    ) -> None:
        program.check()
        self.model, self.program = model, program
        self._launcher = launcher or launcher_of(program)
        self._idle, self._played = 0, False
        self._shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _SharedServer] = WeakKeyDictionary()
        self.name = name or f"command:{shlex.join(program.command)} with {model.name}"

    @property
    def version(self) -> int:
        return self.model.version

    @property
    def engine(self) -> object:
        """The model's engine, at whose load is looked before episodes begin."""
        return getattr(self.model, "engine", None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what the model's server was not sent although it was asked for, and the like."""
        return tuple(getattr(self.model, "notes", ()))

    async def act(self, history: History) -> Reply:
        if history.memory is None:
            history.memory = await self._start(history)
        assert isinstance(history.memory, _Running)
        return await history.memory.play.next()

    async def leave(self, history: History, end: EndReason | None) -> Sequence[Reply]:
        """End the program."""
        running, history.memory = history.memory, None
        if not isinstance(running, _Running):
            return ()
        left = running.play.over(end)
        if running.task is not None:
            running.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running.task
        running.server.remove(running.seat.name)
        if running.door is None:
            await self._server_here().leave()
        else:
            await running.server.close()
            remove_folder(Path(running.door.path).parent)
        return left

    def close(self) -> None:
        self._launcher.close()
        self.model.close()

    async def _start(self, history: History) -> _Running:
        if len(history.env.agents) > 1:
            raise Fault(
                Outcome.INFRA_ERROR,
                "a program plays one agent, and this environment has several: name its opponents",
            )
        play = ProgramEpisode(self.model, history, self.program.limits, plain_words=self.program.plain_words)
        door = None
        if self.program.sandbox is None:
            server = await self._server_here().enter()
        else:
            socket = str(make_folder("door") / "socket")
            server = await _started(self.model.name, socket)
            os.chmod(socket, 0o666)  # a sandbox has a user of its own, and the folder is closed to others
            door = SessionDoor(socket, server.port)
        seat = server.add(Seat(play.session, play, lambda: tuple(history.tools)))
        running = _Running(play, server, seat, door)
        url = f"{server.address}/sessions/{seat.name}"
        running.task = asyncio.create_task(self._run(play, url, seat.key, running.door))
        return running

    def _server_here(self) -> _SharedServer:
        """The server of this event loop."""
        return self._shared.setdefault(asyncio.get_running_loop(), _SharedServer(self.model.name))

    async def _run(self, play: ProgramEpisode, url: str, key: str, door: SessionDoor | None) -> None:
        """Run the program to its end, and say how it ended."""
        try:
            told = self.program.prompt == "messages"
            prompt = json.dumps(conversation(play.messages)) if told else play.instructions
            if play.pictures and not told:
                _logger.warning(
                    "the task has pictures, of which `prompt: text` tells nothing; `prompt: messages` does"
                )
            done = await run_program(self._launcher, self.program, prompt, url, key, door)
            if play.session.fault:  # what it left behind is not what the policy made of the task
                play.stop(EndReason.GAVE_UP)
                return
            try:
                end = await conclude(self.program, play, done)
            finally:
                self._note(play, done)
            play.stop(end)
        except (Fault, RunError) as error:
            play.stop(EndReason.GAVE_UP, error)
        except Exception as error:  # noqa: BLE001 (whatever it is, the episode that waits must hear of it)
            fault = Fault(outcome_of(of_raised(error, policy=True)), describe(error))
            play.stop(EndReason.GAVE_UP, fault)

    def _note(self, play: ProgramEpisode, done: Exited) -> None:
        """Remember whether programs do anything at all.

        Raises:
            RunError: so many ended, and none was given a reply or acted.
        """
        self._played = self._played or play.played
        self._idle += not play.played
        if not self._played and self._idle >= IN_VAIN:
            raise RunError(
                f"None of the first {self._idle} programs was given a reply or acted; of the last, {never_ran(done, play.session)}.",
                f"Run it by hand and repair it: {shlex.join(self.program.command)[:200]}",
            )


async def _started(model: str, socket: str = "") -> GatewayServer:
    server = GatewayServer(model)
    await server.start(socket=socket)
    return server


def read_program(target: str) -> AgentProgram:
    """The program of ``command:TARGET``: a command as a shell would read it, or a YAML file of :class:`AgentProgram`.

    >>> read_program("python agent.py --fast").command
    ('python', 'agent.py', '--fast')

    Raises:
        TurnwiseError: the file is none, or has keys that nobody knows.
    """
    if not target.endswith((".yaml", ".yml")):
        try:
            return AgentProgram(tuple(shlex.split(target)))
        except ValueError as error:
            raise TurnwiseError(
                f"The command {target!r} cannot be read: {error}.", "Close its quotes."
            ) from None
    try:
        data: Any = read_yaml(Path(target).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TurnwiseError(
            f"{target} cannot be read: {error}.", "Give a YAML file with `command`."
        ) from None
    return program_of(data, target)


@component("policy", "command", form="command:PROGRAM")
def command(target: str, options: PolicyOptions) -> ProgramPolicy:
    """A program of any kind, or the YAML file of one, with --model."""
    if not options.model:
        raise TurnwiseError(
            f"The program {target!r} needs a model to talk to.",
            "Say which one: --model vllm:PATH (in Python: make_policy(…, model=…)).",
        )
    from turnwise.agents.policies.registry import make_policy

    program = read_program(target)
    program.check()
    given = options._asdict() | {"model": ""}
    return ProgramPolicy(make_policy(options.model, **given), program)
