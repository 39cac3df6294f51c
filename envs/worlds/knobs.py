"""Knobs of worlds: checked, with the nearest name; and splits by hash."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Literal, TypeVar

import pydantic

from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Task, digest

_BUCKETS = {Split.TRAIN: range(8), Split.DEV: range(8, 9), Split.TEST: range(9, 10)}


class WorldKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of every world's suite."""

    text: Literal["compact", "full"] = "full"  # compact: few words, each the same token wherever it stands
    commands: Literal["hidden", "info", "shown"] = "hidden"  # who is told what can be done
    turn_limit: int = pydantic.Field(30, ge=1)


Knobs = TypeVar("Knobs", bound=pydantic.BaseModel)


def check_knobs(kind: type[Knobs], values: Mapping[str, Json], world: str) -> Knobs:
    """Checked knobs.

    Raises:
        EnvError: one is unknown or has a value that is not allowed.
    """
    for name in values:
        if name not in kind.model_fields:
            error = NotFoundError(f"knob of the {world} called", name, kind.model_fields)
            raise EnvError(error.cause, error.remedy)
    try:
        return kind.model_validate(values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = f"knob {'.'.join(map(str, first['loc']))}" if first["loc"] else "knobs"
        said = first["msg"].removeprefix("Value error, ")  # which pydantic writes before our own words
        raise EnvError(f"The {world}'s {where}: {said}.", f"They are listed in {kind.__name__}.") from None


def in_split(split: Split, *key: Json) -> bool:
    """Say whether what ``key`` names belongs to this split: eight tenths to train, one each to dev and test."""
    return int(digest(*key), 16) % 10 in _BUCKETS[split]


def first_drawn(
    draw: Callable[[Random], Task | None], rng: Random, split: Split, world: str, attempts: int = 2000
) -> Task:
    """The first task that ``draw`` finds.

    Raises:
        EnvError: there is none in so many attempts.
    """
    for _ in range(attempts):
        task = draw(rng)
        if task is not None:
            return task
    raise EnvError(
        f"The {world}'s knobs gave no task of the {split} split in {attempts} attempts.",
        "Make the world larger or ask for less.",
    )
