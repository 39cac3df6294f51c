"""The knob of ShopHuman-v0 that is not the shop's."""

from __future__ import annotations

import pydantic


class HumanKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Settings of a suite beside the shop's own knobs."""

    whim: float = pydantic.Field(0.1, ge=0, le=1)  # how often a person does anything but the usual
