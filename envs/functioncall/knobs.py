"""The knobs of function calling: what a suite may set, checked."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pydantic

from turnwise.envs.functioncall.interfaces import CASES, Case

Api: TypeAlias = Literal[
    "calendar", "files", "memory", "messages", "shopping", "tickets", "trading", "travel", "vehicles"
]
Shape: TypeAlias = Literal[
    "plain", "every", "made_first", "if_so", "several", "field_of", "count", "total", "which"
]  # fmt: skip
Dialect: TypeAlias = Literal["native", "python", "json", "hermes"]


class FunctionCallKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of a suite of function calling."""

    text: Literal["compact", "full"] = "full"  # compact: the small language, one way to say each thing
    rounds: tuple[int, int] = (1, 1)  # requests of one conversation, at least and at most
    shapes: tuple[Shape, ...] = (
        "plain", "plain", "every", "made_first", "if_so", "field_of", "count", "total", "which",
    )  # of requests; named twice is drawn twice as often  # fmt: skip
    apis: tuple[Api, ...] = (
        "calendar",
        "files",
        "messages",
        "shopping",
        "tickets",
        "trading",
        "travel",
        "vehicles",
    )
    offered: int = pydantic.Field(2, ge=1, le=9)  # of these interfaces, that a conversation is about
    memory: bool = False  # whether what was said in earlier sessions is needed and can be looked up
    recalled: float = pydantic.Field(
        0.0, ge=0, le=1
    )  # share of values that stand in a note of an earlier session
    distractors: int = pydantic.Field(0, ge=0, le=70)  # functions of other interfaces that are offered beside
    rows: int = pydantic.Field(8, ge=2, le=12)  # of each table
    irrelevant: float = pydantic.Field(0.0, ge=0, le=0.9)  # share of requests whose function is not offered
    missing: float = pydantic.Field(0.0, ge=0, le=0.9)  # share of requests in which a value is left out
    failing: float = pydantic.Field(0.0, ge=0, le=1)  # probability that a function fails at first
    spoken: bool = False  # dates, times and small numbers in words
    cases: tuple[Case, ...] = CASES  # of the names of functions and parameters
    dialects: tuple[Dialect, ...] = ("native",)  # how calls are to be written
    shuffled: bool = False  # the parameters of functions stand in an order of their own in each conversation
    patience: int = pydantic.Field(3, ge=1)  # needless questions that the user bears
    turn_limit: int = pydantic.Field(30, ge=3)
