"""The knobs of the household: what a suite may set."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pydantic

from turnwise.envs.worlds.knobs import WorldKnobs
from turnwise.tasks.core import Json

GoalKind: TypeAlias = Literal["place", "two", "clean", "heat", "cool", "light"]
KINDS: tuple[GoalKind, ...] = ("place", "two", "clean", "heat", "cool", "light")


class HouseholdKnobs(WorldKnobs, extra="forbid", frozen=True):
    """Settings of a suite of the household."""

    kinds: tuple[GoalKind, ...] = KINDS  # of goals
    goals: int = pydantic.Field(1, ge=1, le=12)  # to be reached together: a routine
    horizon: tuple[int, int] = (1, 1000)  # turns that the scripted solution needs, at least and at most
    rooms: int = pydantic.Field(1, ge=1, le=12)
    receptacles: int = pydantic.Field(10, ge=4, le=120)  # in the whole house, about
    objects: int = pydantic.Field(16, ge=2, le=250)  # in the whole house; those not asked for distract
    vocabulary: Literal["small", "full"] = "full"
    view: Literal["local", "known"] = "local"  # known: it is told at first where everything is
    orders: int = pydantic.Field(0, ge=0, le=120)  # that come one after the other, in place of goals
    back: int = pydantic.Field(
        0, ge=0, le=60
    )  # of these, the last ones: each takes back what an early one moved
    hidden: bool = False  # orders do not say where a thing lies
    lure: float = pydantic.Field(
        0.0, ge=0, le=0.1
    )  # paid at once for what goes into a bin, which later orders may ask for
    irreversible: bool = False  # bins swallow things, and what is heated twice burns
    slip: float = pydantic.Field(0.0, ge=0, le=0.5)  # probability that an act fails
    layouts: int = pydantic.Field(0, ge=0)  # houses of each split; 0: as many as tasks
    seen: bool = False  # dev and test in the houses of training, with goals of their own (ALFWorld's "seen")

    @pydantic.field_validator("horizon", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (1, value) if isinstance(value, int) else value
