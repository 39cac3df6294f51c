"""Settings that a suite of judging may have."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pydantic

Ask: TypeAlias = Literal[
    "verdict", "cut", "score", "pair", "strength", "rank", "step", "first", "chain", "inverse", "fill", "order", "next", "middle"
]  # fmt: skip


class JudgingKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of a suite of judging."""

    ask: Ask = "verdict"  # what is asked
    log: str = ""  # an episode log or a folder that holds one; empty: the one that ships with the package
    candidates: int = pydantic.Field(3, ge=3, le=8)  # of `rank`
    hidden: int = pydantic.Field(2, ge=1, le=6)  # acts of `fill`
