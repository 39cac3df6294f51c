"""Worlds of others that run in an interpreter of their own, one in each process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from turnwise.envs.foreign.state import WorldAnswer, read_answer
from turnwise.envs.replaying import ReplayedWorld
from turnwise.errors import EnvError, InfraError
from turnwise.tasks.core import Json, Task
from turnwise.tools.line_process import AnswerError, LineProcess
from turnwise.tools.sandbox.reap import reap_once

_HOST = Path(__file__).with_name("host.py")
# Not the script itself: its folder would be searched first, and there lie modules of the packages' names.
_START = (
    "import runpy, sys; del sys.path[0]; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
)
PROTOCOL = 1


class WorldProgram(NamedTuple):
    """A program that keeps a world: an interpreter and the file of the other side; also the key of the pool.

    ``start`` and ``deadline`` are the seconds that starting it, and each request after it, may take.
    """

    python: str
    side: str
    start: float = 120.0
    deadline: float = 60.0


class LiveWorld(ReplayedWorld[str, WorldAnswer]):
    """One process. It is started when it is first asked, and again after it died or was killed."""

    def __init__(self, program: WorldProgram) -> None:
        reap_once()
        self.program = program
        self.opening = WorldAnswer()
        self._process: LineProcess | None = None

    @property
    def pid(self) -> int | None:
        """The number of the process, if it runs."""
        return self._process.pid if self._process else None

    def ask(self, do: str, **more: Json) -> Json:
        """Ask the process for something, and start it first where there is none.

        Raises:
            InfraError: it does not answer; it is killed.
            EnvError: the package raised something, which it would again.
        """
        process = self._process or self._started()
        try:
            return process.ask({"do": do, **more}, self.program.deadline)
        except AnswerError as error:
            raise EnvError(
                f"{Path(self.program.side).name} raises {error} when it is asked to {do}.",
                "Catch it on that side, and answer with `refused` or an end.",
            ) from error
        except InfraError:
            self._process = None
            raise

    def act(self, act: str) -> WorldAnswer:
        """Do something, and return the answer; what was refused is forgotten, since it changed nothing."""
        before = self.place
        said = super().act(act)
        if said.refused:
            self._at = before
        return said

    def list(self, asked: Mapping[str, Json]) -> Json:
        """Return what the world says of its own tasks."""
        return self.ask("list", asked=dict(asked))

    def gold(self) -> Json:
        """Return the actions that solve the task that is open; None where nobody knows."""
        return self.ask("gold")

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    # --- inside ----------------------------------------------------------------------------------

    def _started(self) -> LineProcess:
        program = self.program
        name = f"The world of {Path(program.side).name}"
        process = LineProcess(name, [program.python, "-s", "-c", _START, str(_HOST), program.side])
        try:
            hello = process.ask({"do": "hello"}, program.start)
        except AnswerError as error:
            process.close()
            raise EnvError(
                f"{Path(program.side).name} cannot be loaded: {error}.",
                f"Is its package in that environment? {program.python} -m pip list",
            ) from error
        if not isinstance(hello, dict) or hello.get("protocol") != PROTOCOL:
            process.close()
            raise InfraError(
                f"{program.side} says {hello!r:.100} as a greeting.", "Start it with our host.py."
            )
        self._process = process
        return process

    def _begin(self, task: Task) -> Json:
        self.opening = read_answer(self.ask("open", options=dict(task.options)))
        return self.opening.heard

    def _do(self, act: str) -> WorldAnswer:
        return read_answer(self.ask("step", act=json.loads(act)))

    def _heard(self, answer: WorldAnswer) -> Json:
        return answer.heard
