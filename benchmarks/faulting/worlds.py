"""An environment that pays even a random model, and misbehaves where the trial's plan says so.

The plan is a JSON file named by FAULTS_PLAN, which worker processes inherit. Its ``hazard`` names what happens, in which
call, to which share of the tasks, and whether it happens once to each of them or always.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from turnwise import AgentEnv, EndReason, Message, Split, Suite, Task, Transition, register, register_suite
from turnwise.errors import InfraError, VerifierError
from turnwise.tools.core import ToolError

PLAN = "FAULTS_PLAN"
TURNS = 3
EARLY = frozenset("abcdefghijklm")
ENVS = {"pure": "faults/Pure-v0", "blocking": "faults/Blocking-v0"}
MOMENTS: list[Callable[[], None]] = []
"""Called in each step; this is how a process is killed in its n-th step."""


class State(NamedTuple):
    turn: int = 0
    early: float = 0.0


class Pure(AgentEnv[State]):
    """Three turns; each pays the share of its characters from the first half of the alphabet."""

    system = "Say letters."
    turn_limit = 4
    blocking = False

    def __init__(self, *, mixed: bool = False, **options: Any) -> None:
        super().__init__(**options)
        self.mixed = mixed

    @classmethod
    def generate(cls, rng: Random, split: Split) -> Task:
        number = 3 * rng.randrange(10**6) + list(Split).index(split)
        return Task(ENVS[cls.__name__.lower()], f"Early letters, please ({number}).")

    def initial(self, task: Task) -> Any:
        return misbehave("reset", self, task, (State(), task.prompt))

    def transition(self, state: State, action: Message) -> Any:
        for moment in MOMENTS:
            moment()
        if pause := plan().get("pause"):
            time.sleep(pause)
        if action.malformed or action.tool_calls:
            raise ToolError(action.malformed or "There are no tools.")
        said = action.content
        share = sum(letter in EARLY for letter in said) / max(1, len(said))
        after = State(state.turn + 1, state.early + share / 3)
        end = None
        if after.turn == TURNS or not said:
            end = EndReason.SOLVED if after.early > 0.3 else EndReason.FAILED
        change = Transition(after, f"{share:.1f}", {"outcome": share / 3}, end)
        return misbehave("step", self, self.task, change) if state.turn == 1 else change

    def gold(self, state: State) -> str:
        return "xyz" if self.mixed and draw("gold", self.task.prompt) < 0.4 else "abcabc"


class Blocking(Pure):
    """The same in a thread of its own."""

    blocking = True


def register_worlds() -> None:
    """Make both known to this process."""
    for name, env in ENVS.items():
        register(env, f"{__name__}:{name.capitalize()}", "Say early letters, while something goes wrong.")
        register_suite(Suite(f"faults/{name}", env, "Any tasks."))


# --- whom it hits ------------------------------------------------------------------------------------


def plan() -> dict[str, Any]:
    """What is to go wrong in this process."""
    return _read(os.environ.get(PLAN, ""))


@functools.cache
def _read(path: str) -> dict[str, Any]:
    return json.loads(Path(path).read_text()) if path else {}


def draw(*names: object) -> float:
    """A number in [0, 1) that depends on the names alone."""
    data = "/".join(map(str, names)).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=6).digest(), "big") / 2**48


def hit(hazard: Mapping[str, Any], prompt: str) -> bool:
    """Whether a task is one of those that the hazard meets."""
    return draw(hazard["salt"], prompt) < hazard["share"]


def misbehave(place: str, env: Pure, task: Task, sound: Any) -> Any:
    """``sound``, or what the plan wants in its place."""
    hazard = plan().get("hazard")
    if hazard is None or hazard["place"] != place or not hit(hazard, task.prompt):
        return sound
    if hazard["once"] and not _first(Path(hazard["marks"]), task.prompt):
        return sound
    return HAZARDS[hazard["name"]](sound, hazard)


def _first(folder: Path, prompt: str) -> bool:
    name = hashlib.blake2b(prompt.encode(), digest_size=8).hexdigest()
    try:
        os.close(os.open(folder / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


# --- what happens ------------------------------------------------------------------------------------


def _spin(sound: Any, _: Any) -> Any:
    while True:
        pass


def _sleep(sound: Any, _: Any) -> Any:
    time.sleep(1e6)


def _hold_the_lock(sound: Any, _: Any) -> Any:
    re.match("^(a+)+$", "a" * 60 + "b")


def _slow(sound: Any, hazard: Mapping[str, Any]) -> Any:
    time.sleep(hazard["seconds"])
    return sound


def _raises(error: Callable[[], BaseException]) -> Callable[[Any, Any], Any]:
    def play(sound: Any, _: Any) -> Any:
        raise error()

    return play


def _pays(value: Any, name: str = "outcome") -> Callable[[Any, Any], Any]:
    return lambda sound, _: sound._replace(rewards={name: value})


def _with(**changes: Any) -> Callable[[Any, Any], Any]:
    return lambda sound, _: sound._replace(**changes)


def _recurse(sound: Any, hazard: Any) -> Any:
    return _recurse(sound, hazard)


def _exits(sound: Any, _: Any) -> Any:
    os._exit(7)


def _kills(sound: Any, _: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def _prints(sound: Any, hazard: Mapping[str, Any]) -> Any:
    for _ in range(hazard["size"] >> 10):
        print("x" * 1023)
    return sound


def _writes(number: int) -> Callable[[Any, Any], Any]:
    def play(sound: Any, hazard: Mapping[str, Any]) -> Any:
        for _ in range(hazard["size"] >> 16):
            os.write(number, b"\x1b]0;y\x07" + b"y" * 65529)
        return sound

    return play


def _logs(sound: Any, _: Any) -> Any:
    for number in range(2000):
        logging.getLogger("an environment").warning("line %d", number)
    return sound


def _says(sound: Any, hazard: Mapping[str, Any]) -> Any:
    return sound._replace(observation="z" * hazard["size"])


def _tells(sound: Any, hazard: Mapping[str, Any]) -> Any:
    return sound._replace(details={"said": "z" * (hazard["size"] >> 4)})


HAZARDS: dict[str, Callable[[Any, Any], Any]] = {
    "spin": _spin,
    "sleep": _sleep,
    "hold_the_lock": _hold_the_lock,
    "slow": _slow,
    "os_exit": _exits,
    "sigkill": _kills,
    "reward nan": _pays(float("nan")),
    "reward inf": _pays(float("inf")),
    "reward -inf": _pays(float("-inf")),
    "reward 1e39": _pays(1e39),
    "reward text": _pays("1.0"),
    "reward None": _pays(None),
    "reward list": _pays([1.0]),
    "reward True": _pays(True),
    "reward undeclared": _pays(1.0, "bonus"),
    "rewards a number": _with(rewards=1.0),
    "rewards None": _with(rewards=None),
    "observation bytes": _with(observation=b"ab"),
    "observation None": _with(observation=None),
    "observation number": _with(observation=3),
    "end True": _with(end=True),
    "end text": _with(end="solved"),
    "state list": _with(state=[1, 2]),
    "state dict": _with(state={"turn": 1}),
    "details nan": _with(details={"x": float("nan")}),
    "details object": _with(details={"x": object()}),
    "five-tuple": lambda sound, _: ("seen", 1.0, True, False, {}),
    "None": lambda sound, _: None,
    "KeyError": _raises(lambda: KeyError("nobody")),
    "AssertionError": _raises(AssertionError),
    "MemoryError": _raises(MemoryError),
    "SystemExit": _raises(lambda: SystemExit(3)),
    "GeneratorExit": _raises(GeneratorExit),
    "TimeoutError": _raises(lambda: TimeoutError("mine")),
    "StopIteration": _raises(StopIteration),
    "RecursionError": _recurse,
    "InfraError": _raises(lambda: InfraError("The disk is away.", "Wait.")),
    "VerifierError": _raises(lambda: VerifierError("The judge is away.", "Wait.")),
    "surrogate": _with(observation="half \ud800 a pair"),
    "print": _prints,
    "write stdout": _writes(1),
    "write stderr": _writes(2),
    "log": _logs,
    "huge observation": _says,
    "huge details": _tells,
}
