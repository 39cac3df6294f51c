"""The knobs of crafting: what a suite may set."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.craft.vocabulary import GOODS, MADE, RAW, STORE
from turnwise.envs.worlds.knobs import WorldKnobs
from turnwise.tasks.core import Json, Split

OF_A_TREE, OF_A_DAY = ("depth", "width"), ("back", "lure")
"""Knobs that do something for a goal with its recipe tree alone, and for a day of orders alone."""


class CraftKnobs(WorldKnobs, extra="forbid", frozen=True):
    """Settings of a suite of crafting."""

    depth: int = pydantic.Field(2, ge=1, le=8)  # of the goal's recipe tree
    parts: tuple[int, int] = (1, 2)  # different ones of a recipe, at least and at most
    amount: int = pydantic.Field(2, ge=1, le=5)  # of one part, at most
    raw: int = pydantic.Field(4, ge=1)  # raw materials; at most as many as every split has names for
    width: int = pydantic.Field(2, ge=1, le=5)  # things of each level; those not needed distract
    batch: int = pydantic.Field(1, ge=1, le=20)  # of a raw material that one turn may fetch
    horizon: tuple[int, int] = (1, 1000)  # turns of a shortest plan
    recipes: Literal["told", "asked"] = "told"  # asked: one by one, with "recipe X"
    orders: int = pydantic.Field(0, ge=0)  # that come one after the other, in place of a goal
    back: int = pydantic.Field(0, ge=0, le=16)  # of these, the last ones: each builds on two early ones
    lure: float = pydantic.Field(0.0, ge=0, le=0.1)  # paid at once for material that is spoiled
    spare: int | None = pydantic.Field(None, ge=0)  # raw material beyond what is needed; None: plenty
    slip: float = pydantic.Field(0.0, ge=0, le=0.5)  # probability that an act fails, without loss

    @pydantic.field_validator("horizon", "parts", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (1, value) if isinstance(value, int) else value

    @pydantic.field_validator("horizon", "parts")
    @classmethod
    def _rises(cls, value: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= value[0] <= value[1]:
            raise ValueError("give the least, 1 or more, and then the most")
        return value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> CraftKnobs:
        if self.parts[1] > self.raw:
            raise ValueError("parts must be at most the raw materials")
        if self.orders and self.orders - self.back < 2 * self.back + 1:
            raise ValueError(
                "twice as many orders as build on others, and one, build on none: lower back, or raise orders"
            )
        idle = [name for name in (OF_A_TREE if self.orders else OF_A_DAY) if name in self.model_fields_set]
        if any(getattr(self, name) for name in idle):
            where = "with orders: leave" if self.orders else "without orders: set orders, or leave"
            raise ValueError(f"{' and '.join(idle)} can have no effect {where} it out")
        return self

    @pydantic.model_validator(mode="after")
    def _has_names(self) -> CraftKnobs:
        """Each split draws names of its own, but for few words, which are those of train."""
        splits = [*Split] if self.text == "full" else [Split.TRAIN]
        materials, things = (STORE, GOODS) if self.orders else (RAW, MADE)
        knob = "orders" if self.orders else "depth times width"
        for name, asked, names in (
            ("raw", self.raw, materials),
            (knob, self.orders or self.depth * self.width, things),
        ):
            least = min(splits, key=lambda split: len(names[split]))
            if asked > len(names[least]):
                raise ValueError(
                    f"{name} must be at most {len(names[least])}, the names of split {least} in text {self.text}"
                )
        return self
