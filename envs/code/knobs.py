"""The knobs of programming tasks: what a suite may set."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.code.datasets import Form
from turnwise.envs.code.families.core import FAMILIES


class CodeKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of a suite of programming tasks."""

    language: Literal["python", "expression"] = "python"  # expression: one line of a small language
    families: tuple[Literal["strings", "sequences", "parsing", "simulation", "graphs", "structures"], ...] = (
        FAMILIES  # type: ignore[assignment]
    )
    levels: tuple[int, ...] = (1, 2, 3)  # of the templates: 1 short loops, 3 several rules at once
    contest: bool = False  # contest problems, whose largest tests only a fast algorithm passes
    batch: bool = False  # the function is applied to a list of inputs, by a rule of its own
    visible: int = pydantic.Field(default=3, ge=1, le=20)  # tests that are shown
    hidden: int = pydantic.Field(default=40, ge=4, le=200)  # tests that decide
    dataset: str = ""  # a JSONL file of problems instead of generated ones
    form: Form = "humaneval"  # of that file
    published: Literal["", "humaneval", "mbpp", "evalplus", "livecodebench"] = (
        ""  # the file as it was published
    )
    index: int = pydantic.Field(default=0, ge=0)  # of that file's problems
    turn_limit: int = pydantic.Field(default=8, ge=1)
