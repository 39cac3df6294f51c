"""Share of the right answer that an episode names."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.envs.messages import Message
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of, wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.answers import solutions
from turnwise.trainers.signal.core import Measured, SignalContext


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"matched": (0.5 + 0.5 * wave(p)[:, :1]) * turns_of(p)}


@component(
    "signal",
    "matched",
    paper="2510.24694",
    gives=("matched",),
    reads=("gold", "outcomes"),
    stand_in=_stand_in,
)
def matched(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """The share of the gold solution's entities that each episode's agent names, on each of its turns (E-GRPO).

    >>> sorted(entities(Message("assistant", "click[B012]")))
    ['b012']
    """
    share_B = torch.tensor(shares(groups, solutions(groups, see.env_options)))
    return Measured({"matched": share_B[:, None] * batch.turns.mask_BK})


def shares(groups: Sequence[Sequence[Episode]], plans: Sequence[Sequence[Message]]) -> list[float]:
    """The share of the solution's entities that each episode's agent names, whatever it does with them."""
    found: list[float] = []
    for group, plan in zip(groups, plans, strict=True):
        wanted = {entity for message in plan for entity in entities(message)}
        for episode in group:
            said = "\n".join(_text(turn.action) for turn in episode.trajectory.turns).lower()
            found.append(sum(entity in said for entity in wanted) / max(1, len(wanted)))
    return found


def entities(message: Message) -> set[str]:
    """The entities that an action names: arguments of tools; in a text the words in brackets, else all of it.

    >>> sorted(entities(Message("assistant", "click[B012]"))), sorted(entities(Message("assistant", "go north")))
    (['b012'], ['go north'])
    """
    values = [str(value) for call in message.tool_calls for value in call.arguments.values()]
    if not values:
        values = re.findall(r"\[(.+?)\]", message.content) or [message.content]
    return {value.strip().lower() for value in values if len(value.strip()) > 1}


def _text(message: Message) -> str:
    called = (str(value) for call in message.tool_calls for value in call.arguments.values())
    return "\n".join([message.content, *called])
