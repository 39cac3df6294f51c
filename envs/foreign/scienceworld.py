"""ScienceWorld: 30 types of tasks of a school laboratory, with its published splits. `turnwise worlds add scienceworld`"""

from __future__ import annotations

import functools
from pathlib import Path
from random import Random

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "foreign/ScienceWorld-v0"


class ScienceWorldEnv(ForeignEnv):
    """A variation of a task; a turn is a command in words, and the score is the simulator's, in hundredths."""

    system = (
        "Do the task with one command a turn, such as: look around, go to kitchen, open cupboard, pick up thermometer, use "
        "thermometer in inventory on water, focus on water, wait1, look at substance."
    )
    world = "scienceworld"
    side = Path(__file__).parent / "sides" / "scienceworld_side.py"
    deadline = 300.0  # a busy machine: loading a variation looks for its solution
    turn_limit = 200  # the longest of its own solutions takes 191

    @classmethod
    def generate(
        cls,
        rng: Random,
        split: Split,
        *,
        task: str = "",
        index: int | None = None,
        simplification: str = "",
        **knobs: Json,
    ) -> Task:
        """A variation of the published split: the one of ``index``, or any."""
        if not task or knobs:
            raise EnvError("ScienceWorld-v0 has no tasks of its own.", "Name a type: scienceworld:boil.")
        published = _variations(task)[split.value]
        variation = rng.choice(published) if index is None else published[index % len(published)]
        options = {"task": task, "variation": variation, "simplification": simplification}
        return Task(ENV, f"ScienceWorld {task}, variation {variation}", options)


@functools.cache
def _tasks() -> frozenset[str]:
    return frozenset(ScienceWorldEnv.ask_world())


@functools.cache
def _variations(task: str) -> dict[str, list[int]]:
    return ScienceWorldEnv.ask_world(task=task)


def suite_of(path: str) -> Suite:
    """The suite ``scienceworld:TASK``.

    Raises:
        NotFoundError: there is no such type of task.
    """
    if path not in _tasks():
        raise NotFoundError("task of ScienceWorld", path, _tasks())
    splits = {split: len(found) for split, found in _variations(path).items()}
    return Suite(
        f"scienceworld:{path}", ENV, f"ScienceWorld's {path}.", {"task": path}, listed=True, splits=splits
    )
