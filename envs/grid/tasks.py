"""Tasks on the grid: knobs → levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from turnwise.envs.grid import levels
from turnwise.envs.grid.knobs import GridKnobs
from turnwise.envs.grid.solver import distance
from turnwise.envs.grid.state import GridBoard, begin, solved
from turnwise.envs.grid.vocabulary import ASK
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Split, Task

ENV = "turnwise/Grid-v0"


def draw_task(rng: Random, split: Split, knobs: GridKnobs) -> Task:
    """A level that no other split can draw, and that can be solved."""

    def draw(rng: Random) -> Task | None:
        fitting = (level for level in _levels(rng, knobs) if in_split(split, ENV, knobs.game, level))
        return next((task for level in fitting if (task := _task(level, knobs))), None)

    return first_drawn(draw, rng, split, "grid", attempts=20_000)  # levels are cheap, safe lakes rare


def _task(level: Sequence[str], knobs: GridKnobs) -> Task | None:
    shared = ("game", "moves", "slip", "sight", "image", "text", "commands", "turn_limit")
    options = {"level": list(level), **{name: getattr(knobs, name) for name in shared}}
    task = Task(ENV, ASK[knobs.game][knobs.text == "compact"], options)
    state = begin(GridBoard(task))
    length = distance(state)
    low, high = knobs.horizon
    if solved(state) or not low <= length <= min(high, knobs.turn_limit * knobs.moves):
        return None
    return Task(ENV, task.prompt, options, {"moves": round(length, 3)})


def _levels(rng: Random, knobs: GridKnobs) -> Iterator[Sequence[str]]:
    match knobs.game:
        case "sokoban":
            if knobs.farthest:
                yield from levels.far_sokoban(rng, knobs.size, knobs.boxes, knobs.horizon[0])
            else:
                yield from levels.sokoban(rng, knobs.size, knobs.boxes)
        case "maze":
            level = levels.maze(rng, knobs.size, knobs.doors, knobs.decoys)
            if level is not None:
                yield level
        case "lake":
            yield levels.lake(rng, knobs.size, knobs.holes)
