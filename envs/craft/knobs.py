"""The knobs of crafting: what a suite may set."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.worlds.knobs import WorldKnobs
from turnwise.tasks.core import Json

MOST_RAW = 12
"""Raw materials of a goal's recipe tree, at most."""


class CraftKnobs(WorldKnobs, extra="forbid", frozen=True):
    """Settings of a suite of crafting."""

    depth: int = pydantic.Field(2, ge=1, le=8)  # of the goal's recipe tree
    parts: tuple[int, int] = (1, 2)  # different ones of a recipe, at least and at most
    amount: int = pydantic.Field(2, ge=1, le=5)  # of one part, at most
    raw: int = pydantic.Field(4, ge=1, le=28)  # raw materials; at most 12, but for a day of orders
    width: int = pydantic.Field(2, ge=1, le=5)  # things of each level; those not needed distract
    batch: int = pydantic.Field(1, ge=1, le=20)  # of a raw material that one turn may fetch
    horizon: tuple[int, int] = (1, 1000)  # turns of a shortest plan
    recipes: Literal["told", "asked"] = "told"  # asked: one by one, with "recipe X"
    orders: int = pydantic.Field(0, ge=0, le=48)  # that come one after the other, in place of a goal
    back: int = pydantic.Field(0, ge=0, le=16)  # of these, the last ones: each builds on two early ones
    lure: float = pydantic.Field(
        0.0, ge=0, le=0.1
    )  # paid at once for material that is spoiled, which later orders may need
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
        if self.orders and self.orders - self.back < 2 * self.back + 1:
            raise ValueError(
                "twice as many orders as build on others, and one, build on none: lower back, or raise orders"
            )
        if self.raw > MOST_RAW and not self.orders:
            raise ValueError(f"raw must be at most {MOST_RAW}, but for a day of orders")
        return self
