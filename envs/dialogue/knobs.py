"""The knobs of conversations: what a suite may set, checked."""

from __future__ import annotations

from typing import Literal

import pydantic

from turnwise.envs.worlds.knobs import WorldKnobs


class DialogueKnobs(WorldKnobs, extra="forbid", frozen=True):
    """Settings of a suite of conversations."""

    scene: Literal["bargain", "persuade", "comfort", "social"] = "bargain"
    partner: Literal["scripted", "agent", "model"] = "scripted"
    # agent: a second policy, trained or not; model: a language model of the world (DialogueEnv(partner=…))
    paraphrase: int = pydantic.Field(1, ge=1, le=3)  # ways in which a scripted partner says the same
    turn_limit: int = pydantic.Field(10, ge=1)
    patience: int = pydantic.Field(
        0, ge=0
    )  # turns of a bargain, presses when persuading; 0: as many as it takes
    issues: int = pydantic.Field(3, ge=2, le=5)
    choices: int = pydantic.Field(3, ge=2, le=4)  # options of each issue
    vain: int = pydantic.Field(
        0, ge=0
    )  # offers no better for a scripted partner than all before; so many end it
    lies: bool = False  # the partner of a bargain
    concerns: int = pydantic.Field(2, ge=1, le=5)  # of the person to be persuaded
    paid: Literal["gain", "emotion"] = "gain"  # of comfort: of the 70 that can be gained, or RLVER's e / 100
    swing: int = pydantic.Field(
        20, ge=1, le=100
    )  # of comfort: the largest change that an agent or a model who plays the user may name
