"""Tasks on the grid: knobs → levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Literal

import pydantic

from turnwise.envs.grid import levels
from turnwise.envs.grid.board import Board, begin, solved
from turnwise.envs.grid.plans import distance
from turnwise.envs.worlds.knobs import WorldKnobs, first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/Grid-v0"
ASK = {
    "sokoban": ("Push every box onto a target.", "push o to x ."),
    "maze": ("Find the keys, open their doors and reach the exit.", "go to x ."),
    "lake": ("Cross the ice to the target; do not fall into a hole.", "go to x ."),
}


class GridKnobs(WorldKnobs, extra="forbid", frozen=True):
    """What a suite of the grid may set."""

    game: Literal["sokoban", "maze", "lake"] = "sokoban"
    size: int = pydantic.Field(7, ge=5, le=31)  # of the square level, its wall included; odd for mazes
    horizon: tuple[int, int] = (1, 1000)  # moves of the shortest way (expected ones on slippery ice)
    moves: int = pydantic.Field(1, ge=1, le=20)  # that one turn may make
    sight: int = pydantic.Field(0, ge=0)  # how far one sees; 0: everything
    image: bool = False  # show levels as pictures instead of text
    boxes: int = pydantic.Field(1, ge=1, le=5)
    doors: int = pydantic.Field(1, ge=0, le=4)
    decoys: int = pydantic.Field(0, ge=0, le=2)  # doors that lead nowhere, and their keys
    holes: float = pydantic.Field(0.25, ge=0, le=0.9)  # how much of the ice, beside the way
    slip: float = pydantic.Field(0.0, ge=0, le=0.8)  # probability of sliding to the side, on the lake

    @pydantic.field_validator("horizon", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (1, value) if isinstance(value, int) else value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> GridKnobs:
        if self.slip and self.game != "lake":
            raise ValueError("only the lake is slippery")
        if self.game == "maze" and self.size % 2 == 0:
            raise ValueError("a maze's size must be odd")
        return self


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
    state = begin(Board(task))
    length = distance(state)
    low, high = knobs.horizon
    if solved(state) or not low <= length <= min(high, knobs.turn_limit * knobs.moves):
        return None
    return Task(ENV, task.prompt, options, {"moves": round(length, 3)})


def _levels(rng: Random, knobs: GridKnobs) -> Iterator[Sequence[str]]:
    match knobs.game:
        case "sokoban":
            yield from levels.sokoban(rng, knobs.size, knobs.boxes)
        case "maze":
            level = levels.maze(rng, knobs.size, knobs.doors, knobs.decoys)
            if level is not None:
                yield level
        case "lake":
            yield levels.lake(rng, knobs.size, knobs.holes)
