"""The knobs of the laboratory: what a suite may set."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.lab.lessons import LESSONS
from turnwise.envs.worlds.knobs import WorldKnobs
from turnwise.tasks.core import Json


class LabKnobs(WorldKnobs, extra="forbid", frozen=True):
    """Settings of a suite of the laboratory."""

    lessons: tuple[str, ...] = tuple(LESSONS)
    horizon: tuple[int, int] = (1, 1000)  # turns that the scripted solution needs, at least and at most
    rooms: int = pydantic.Field(4, ge=1, le=8)  # at least; a lesson may need more
    distractors: int = pydantic.Field(4, ge=0, le=80)  # things that nobody needs
    hidden: float = pydantic.Field(
        0.5, ge=0, le=1
    )  # share of things that lie in or on furniture, some of it closed
    view: Literal["local", "known"] = "local"  # known: it is told at first where everything is
    broken: int = pydantic.Field(0, ge=0, le=3)  # devices that do not work, where others do
    irreversible: bool = True  # a wrong focus fails, wrong mixtures spoil, what is too hot burns
    slip: float = pydantic.Field(0.0, ge=0, le=0.5)  # probability that an act fails
    orders: int = pydantic.Field(0, ge=0, le=120)  # that come one after the other, in place of a lesson
    back: int = pydantic.Field(
        0, ge=0, le=60
    )  # of these, the last ones: each is about what earlier ones found
    unseen: bool = True  # each split has variations of its own; otherwise only tasks of its own

    @pydantic.field_validator("horizon", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (1, value) if isinstance(value, int) else value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> LabKnobs:
        plain = self.orders - self.back
        if self.orders and (plain < 6 or (self.back + 1) // 2 > plain // 2):
            raise ValueError(
                "six orders at least, and half of all, refer to none: lower back, or raise orders"
            )
        return self

    @pydantic.field_validator("lessons", mode="after")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in LESSONS:
                raise ValueError(f"there is no lesson {name!r}, only {', '.join(LESSONS)}")
        return value
