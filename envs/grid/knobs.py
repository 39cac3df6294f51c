"""The knobs of the grid: what a suite may set."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.worlds.knobs import WorldKnobs
from turnwise.tasks.core import Json


class GridKnobs(WorldKnobs, extra="forbid", frozen=True):
    """Settings of a suite of the grid."""

    game: Literal["sokoban", "maze", "lake"] = "sokoban"
    size: int = pydantic.Field(7, ge=5, le=31)  # of the square level, its wall included; odd for mazes
    horizon: tuple[int, int] = (1, 1000)  # moves of the shortest way (expected ones on slippery ice)
    moves: int = pydantic.Field(1, ge=1, le=20)  # that one turn may make
    sight: int = pydantic.Field(0, ge=0)  # how far one sees; 0: everything
    image: bool = False  # show levels as pictures instead of text
    boxes: int = pydantic.Field(1, ge=1, le=5)
    farthest: bool = (
        False  # Sokoban: levels among the longest of their room, by a search backwards from the end
    )
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
