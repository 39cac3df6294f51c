"""verifiers v1: tasksets with their own harness and environment, played by one agent. `turnwise worlds add verifiers`"""

from __future__ import annotations

import functools
from pathlib import Path
from random import Random

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "foreign/Verifiers-v0"
_ENDLESS = 4096  # tasks of each split, where a taskset has no end


class VerifiersEnv(ForeignEnv):
    """An episode of a taskset: each request of its program to a model is a turn, and its reward is paid at the end."""

    world = "verifiers"
    side = Path(__file__).parent / "sides" / "verifiers_side.py"
    gold_known = False
    deadline = 300.0  # its programs start and judge in processes of their own
    turn_limit = 1000
    words_end = "a program may take words without a call as the answer"
    calls_end = "a program may end at calls that it cannot carry out"

    @classmethod
    def generate(
        cls, rng: Random, split: Split, *, taskset: str = "", index: int | None = None, **knobs: Json
    ) -> Task:
        """A task of a taskset: the one of ``index``, or any; ``knobs`` are the taskset's own."""
        if not taskset:
            raise EnvError("Verifiers-v0 has no tasks of its own.", "Name a taskset: verifiers:gsm8k-v1.")
        number = cls.seed_of(rng, split, _ENDLESS) if index is None else index
        options = {"taskset": taskset, "index": number, **({"knobs": knobs} if knobs else {})}
        return Task(ENV, f"verifiers {taskset}, task {number}", options)


@functools.cache
def _size(taskset: str) -> int | None:
    return VerifiersEnv.ask_world(taskset=taskset)


def suite_of(path: str) -> Suite:
    """The suite ``verifiers:TASKSET``: an installed one, or the folder of a package; its tasks in their order, the same in each split.

    Raises:
        EnvError: there is no such taskset.
    """
    where = str(Path(path).resolve()) if Path(path).is_dir() else path
    size = _size(where)
    about = f"The taskset {path} of verifiers."
    return Suite(f"verifiers:{path}", ENV, about, {"taskset": where}, size, listed=size is not None)
