"""The knobs of tool worlds, and of domains in files: what a suite may set, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import pydantic

from turnwise.envs.toolworld.domain import DOMAINS
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.errors import NotFoundError
from turnwise.tasks.core import Json

_Share: TypeAlias = Annotated[float, pydantic.Field(ge=0, le=1)]


class ToolWorldKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of a suite of tool worlds."""

    domains: tuple[str, ...] = ("retail",)
    requests: tuple[int, int] = (1, 2)  # of a story, at least and at most; or one number
    traps: _Share = 0.25  # probability that a request is against the policy
    changes: _Share = 0.2  # probability that the user changes their mind in a request
    together: _Share = 0.0  # probability that a user of several requests tells all of them at once
    paraphrase: bool = True
    patience: int = pydantic.Field(4, ge=2, le=20)  # misunderstandings until the user leaves
    brief: _Share = 0.3  # probability of a user who tells one fact at a time
    size: int = pydantic.Field(24, ge=4, le=2000)  # customers of a world, about
    worlds: int = pydantic.Field(64, ge=1)  # different ones per split
    user: Literal["scripted", "agent", "model"] = "scripted"  # model: see ToolWorldEnv(user=…)
    turn_limit: int = pydantic.Field(30, ge=4)

    @pydantic.field_validator("requests", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (value, value) if isinstance(value, int) else value

    @pydantic.field_validator("domains", mode="after")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in DOMAINS:
                error = NotFoundError("domain", name, DOMAINS)
                raise ValueError(f"{error.cause} {error.remedy}")
        return value


class FileDomainKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """A suite over a folder of files."""

    data: str
    code: bool = False  # run the tools of tau-bench's own folders: as trusted as a package that you install
    skip: bool = False  # leave out tasks that cannot be used, instead of refusing the folder
    user: Literal["scripted", "agent", "model"] = "scripted"
    patience: int = pydantic.Field(4, ge=2, le=20)
    turn_limit: int = pydantic.Field(40, ge=4)


def knobs_of(values: Mapping[str, Json]) -> ToolWorldKnobs | FileDomainKnobs:
    """Check knobs; with ``data`` they are those of a domain in files.

    Raises:
        EnvError: one is unknown or has a value that is not allowed.
    """
    return check_knobs(FileDomainKnobs if "data" in values else ToolWorldKnobs, values, "tool world")
