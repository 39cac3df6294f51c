"""Choice of the next action: gold, and an imperfect scripted policy."""

from __future__ import annotations

from random import Random

from turnwise.envs.images.state import ImageState
from turnwise.envs.images.tasks import ImageTask
from turnwise.envs.swe.solver import SweCall


def gold(task: ImageTask, state: ImageState) -> SweCall:
    """Runs the solution that the task brings, then submits."""
    return SweCall("submit") if state.done else SweCall("shell", {"command": task.solution})


def demonstrate(task: ImageTask, state: ImageState, rng: Random) -> SweCall:
    """An imperfect scripted policy: it looks around, and sometimes submits without having done anything."""
    draw = rng.random()
    if draw < 0.3:
        return SweCall("shell", {"command": "ls -la"})
    return SweCall("submit") if draw < 0.4 else gold(task, state)
