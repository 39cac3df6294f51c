"""Environments that do what none should: for the tests of worker processes and of threads."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from turnwise.agents.core import History, Reply
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message
from turnwise.envs.registry import register
from turnwise.errors import InfraError
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise-test/Hazard-v0"
PURE = "turnwise-test/PureHazard-v0"
CLOSING = "turnwise-test/Closing-v0"
OPEN = "turnwise-test/Open-v0"
UNMADE = "turnwise-test/Unmade-v0"
STEPS = 4
AT = 2  # the step in which it happens


class HazardEnv(AgentEnv[int]):
    """Counts four steps; in the third it does what its task says."""

    blocking = True
    turn_limit = 10

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return task("nothing", rng.getrandbits(30))

    def initial(self, task: Task) -> tuple[int, str]:
        return 0, "begin"

    def transition(self, state: int, action: Message) -> Transition[int]:
        if state == AT:
            HAZARDS[self.task.options["hazard"]](self.task)
        done = state + 1 == STEPS
        said = f"{state + 1} {self.rng().random():.3f} {action.content}"
        return Transition(state + 1, said, {"outcome": float(done)}, EndReason.SOLVED if done else None)

    def gold(self, state: int) -> str:
        return f"step {state}"


class PureHazardEnv(HazardEnv):
    """The same on the event loop."""

    blocking = False


class ClosingEnv(HazardEnv):
    """Leaves a file for each time it is made and, after some work, for each time it is closed."""

    waits = False

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder, self.name = Path(folder), uuid.uuid4().hex
        (self.folder / f"{self.name}.begun").touch()
        while self.waits and not (self.folder / "go").exists():
            time.sleep(0.01)
        (self.folder / f"{self.name}.made").touch()

    def close(self) -> None:
        time.sleep(0.2)
        with (self.folder / f"{self.name}.closed").open("a") as file:
            file.write("x")


class OpenEnv(HazardEnv):
    """Has something of its own, and says things that cannot be read where they are heard."""

    system = "Count."
    turn_limit = 7

    @property
    def board(self) -> str:
        return f"at {self.state}"

    def variables(self) -> dict[str, str]:
        return dict(os.environ)

    def trap(self) -> Trap:
        return Trap(os.getpid())


class Trap(NamedTuple):
    """Is read in the process that made it, and nowhere else."""

    pid: int

    def __reduce__(self) -> tuple[Any, ...]:
        return _untrap, (self.pid,)


def _untrap(pid: int) -> Trap:
    if os.getpid() != pid:
        raise ImportError("there is no such module here")
    return Trap(pid)


class EndlessMakeEnv(HazardEnv):
    """Ends an iteration that nobody began."""

    def __init__(self) -> None:
        super().__init__()
        next(iter(()))


def task(hazard: str, salt: int = 0, *, env: str = ENV, mark: str = "") -> Task:
    return Task(env, hazard, {"hazard": hazard, "salt": salt, "mark": mark})


def _first_time(task: Task) -> bool:
    """True once for each mark."""
    try:
        os.close(os.open(task.options["mark"], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def _nothing(task: Task) -> None:
    pass


def _spin(task: Task) -> None:
    while True:
        pass


def _sleep(task: Task) -> None:
    if task.options["mark"]:
        Path(task.options["mark"]).touch()
    time.sleep(1e6)


def _hold_the_lock(task: Task) -> None:
    re.match("^(a+)+$", "a" * 60 + "b")


def _hang_once(task: Task) -> None:
    if _first_time(task):
        Path(task.options["mark"]).write_text(str(os.getpid()))
        time.sleep(1e6)


def _fail_once(task: Task) -> None:
    if _first_time(task):
        raise InfraError("The disk is away.", "Wait.")


def _fail(task: Task) -> None:
    raise InfraError("The disk is away.", "Wait.")


def _raise(task: Task) -> None:
    raise KeyError("nobody")


def _stop_iteration(task: Task) -> None:
    raise StopIteration


def _generator_exit(task: Task) -> None:
    raise GeneratorExit


def _cancelled(task: Task) -> None:
    raise asyncio.CancelledError


def _exit(task: Task) -> None:
    sys.exit(3)


class Odd(BaseException):
    """No ``Exception``, as some libraries' signals are."""


def _odd(task: Task) -> None:
    raise Odd("oddly")


def _fork_then_killed_once(task: Task) -> None:
    """The forked process ends by itself; then this one is killed from outside."""
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    _killed_once(task)


def _use_stdout(task: Task) -> None:
    sys.stdout.buffer.write("é".encode(sys.stdout.encoding))


def _os_exit(task: Task) -> None:
    os._exit(7)


def _segfault(task: Task) -> None:
    ctypes.string_at(0)


def _killed_once(task: Task) -> None:
    if _first_time(task):
        os.kill(os.getpid(), signal.SIGKILL)


def _print(task: Task) -> None:
    for _ in range(100_000):
        print("x" * 1000)


def _flood(task: Task) -> None:
    while True:
        os.write(1, b"y" * 65536)


def _spawn_and_exit(task: Task) -> None:
    """Leave a process behind that has left the session, and end."""
    mark = task.options["mark"]
    subprocess.Popen(["sleep", f"{3600 + int(mark)}"], start_new_session=True)
    os._exit(0)


def _hold_a_sandbox_and_exit(task: Task) -> None:
    """Begin something in a sandbox, and end without ending it."""
    from turnwise.tools.sandbox.core import SandboxImage
    from turnwise.tools.sandbox.registry import get_backend

    sandbox = get_backend("bubblewrap").start(SandboxImage.of({"a": "1"}))
    assert sandbox.exec(["true"]).ok
    threading.Thread(target=sandbox.exec, args=(["sleep", "600"],), daemon=True).start()
    Path(task.options["mark"]).write_text(str(os.getpid()))
    os._exit(0)


HAZARDS = {
    "nothing": _nothing,
    "spin": _spin,
    "sleep": _sleep,
    "hold_the_lock": _hold_the_lock,
    "hang_once": _hang_once,
    "fail_once": _fail_once,
    "fail": _fail,
    "raise": _raise,
    "StopIteration": _stop_iteration,
    "GeneratorExit": _generator_exit,
    "CancelledError": _cancelled,
    "exit": _exit,
    "os_exit": _os_exit,
    "segfault": _segfault,
    "killed_once": _killed_once,
    "print": _print,
    "odd": _odd,
    "fork_then_killed_once": _fork_then_killed_once,
    "use_stdout": _use_stdout,
    "flood": _flood,
    "spawn_and_exit": _spawn_and_exit,
    "hold_a_sandbox_and_exit": _hold_a_sandbox_and_exit,
}


class Counter(NamedTuple):
    """Says how many turns it has played."""

    name: str = "counter"
    version: int = 0

    async def act(self, history: History) -> Reply:
        return Reply(Message("assistant", f"say {len(history.turns)}"), (1,), (2, 3), (-0.1, -0.2))

    def close(self) -> None:
        pass


def register_hazards() -> None:
    register(ENV, f"{__name__}:HazardEnv", "does what none should")
    register(CLOSING, f"{__name__}:ClosingEnv", "tells when it is closed")
    register(OPEN, f"{__name__}:OpenEnv", "has something of its own")
    register(UNMADE, f"{__name__}:EndlessMakeEnv", "cannot be made")
    register(PURE, f"{__name__}:PureHazardEnv", "does what none should, on the event loop")
