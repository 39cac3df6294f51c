"""The knobs of crafting: what a suite may set."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.worlds.knobs import WorldKnobs
from turnwise.tasks.core import Json


class CraftKnobs(WorldKnobs, extra="forbid", frozen=True):
    """Settings of a suite of crafting."""

    depth: int = pydantic.Field(2, ge=1, le=8)  # of the goal's recipe tree
    parts: tuple[int, int] = (1, 2)  # different ones of a recipe, at least and at most
    amount: int = pydantic.Field(2, ge=1, le=5)  # of one part, at most
    raw: int = pydantic.Field(4, ge=1, le=12)  # raw materials
    width: int = pydantic.Field(2, ge=1, le=5)  # things of each level; those not needed distract
    batch: int = pydantic.Field(1, ge=1, le=20)  # of a raw material that one turn may fetch
    horizon: tuple[int, int] = (1, 1000)  # turns of a shortest plan
    recipes: Literal["told", "asked"] = "told"  # asked: one by one, with "recipe X"
    spare: int | None = None  # raw material beyond what is needed; None: plenty
    slip: float = pydantic.Field(0.0, ge=0, le=0.5)  # probability that an act fails, without loss

    @pydantic.field_validator("horizon", "parts", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (1, value) if isinstance(value, int) else value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> CraftKnobs:
        if self.parts[1] > self.raw:
            raise ValueError("parts must be at most the raw materials")
        return self
