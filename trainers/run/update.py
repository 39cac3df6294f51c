"""The learning half of an update: signals, rewards, credit, filter, shapes, and the learner's steps."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group, TurnBatch
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.kit.token_credit import on_turns
from turnwise.trainers.learn.collate import TrainingBatch, collate, collate_turns
from turnwise.trainers.run.parts import Parts
from turnwise.trainers.signal.core import SignalContext
from turnwise.trainers.signal.measure import Signals


class UpdateResult(NamedTuple):
    """What an update made of the groups that were played.

    Attributes:
        groups: with the recipe's rewards.
        weights: of each episode, as the filter gave them; 0 was not trained on.
        advantages: of each episode, one number per turn, as they were learned from.
        metrics: of signals and steps.
    """

    groups: Sequence[Group] = ()
    weights: Sequence[float] = ()
    advantages: Sequence[Sequence[float]] = ()
    metrics: Mapping[str, float] = MappingProxyType({})

    @property
    def kept(self) -> list[bool]:
        """Of each group whether any of its episodes is trained on."""
        weights = iter(self.weights)
        return [any(next(weights) > 0 for _ in group) for group in self.groups]


def update_policy(
    see: SignalContext,
    signals: Signals,
    parts: Parts,
    groups: Sequence[Group],
    *,
    seed: int,
    update: int,
    weights: Sequence[float] = (),
) -> UpdateResult:
    """Train on all groups that were played; chance comes from (seed, update).

    ``weights`` of the groups' trajectories multiply those of the filter; 1 each if there are none.
    """
    if not groups:
        return UpdateResult()
    batch, paid, metrics = _paid(see, signals, parts, groups)
    batch, measured = signals.measure(see, batch, paid)
    metrics |= measured
    turns, began = batch.turns, time.perf_counter()
    credit = parts.credit(turns)
    weight_B = parts.filter(turns, credit)
    if weights:
        weight_B = weight_B * torch.tensor(weights, dtype=weight_B.dtype)[turns.group_B]
    shaped = credit
    for shape in parts.shapes:
        shaped = shape(shaped, turns)
    metrics["credit_seconds"] = time.perf_counter() - began
    order = list(range(len(groups)))
    derive_rng("minibatches", seed, update).shuffle(order)
    metrics |= see.learner.update(batch, shaped, parts.objective, weight_B=weight_B, aims=credit, order=order)
    return UpdateResult(
        paid, weight_B.tolist(), _per_turn(on_turns(shaped, turns) * weight_B[:, None], turns), metrics
    )


def _paid(
    see: SignalContext, signals: Signals, parts: Parts, groups: Sequence[Group]
) -> tuple[TrainingBatch, list[Group], dict[str, float]]:
    """The batch and the groups with the recipe's rewards, which may pay for signals."""
    batch, metrics = collate(groups), dict[str, float]()
    asked = parts.paid_signals - batch.turns.measured
    if asked:
        batch, metrics = signals.measure(see, batch, groups, only=asked)
        groups = _told(groups, {name: batch.turns.signals[name] for name in sorted(asked)})
    paid = [parts.reward(group) for group in groups]
    reward_BK = collate_turns(paid).reward_BK
    return batch._replace(turns=dataclasses.replace(batch.turns, reward_BK=reward_BK)), paid, metrics


def _told(groups: Sequence[Group], measured: dict[str, Tensor]) -> list[Group]:
    """The groups with what was measured written into their turns."""
    rows = {name: iter(x if x.dim() == 2 else x[:, None]) for name, x in measured.items()}
    told: list[Group] = []
    for group in groups:
        members = []
        for episode in group:
            x = {name: next(row).tolist() for name, row in rows.items()}
            turns = range(len(episode.trajectory.turns))
            members.append(
                with_signals(
                    episode, [{name: v[k if len(v) > 1 else 0] for name, v in x.items()} for k in turns]
                )
            )
        told.append(members)
    return told


def _per_turn(x_BK: Tensor, turns: TurnBatch) -> list[list[float]]:
    return [row[:n] for row, n in zip(x_BK.tolist(), turns.length_B.tolist(), strict=True)]
