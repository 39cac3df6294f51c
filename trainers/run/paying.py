"""Rewards of an update: the recipe's, which may pay for signals that were measured of the batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from turnwise.agents.core import Episode
from turnwise.trainers.core import Group
from turnwise.trainers.kit.payer import Payer
from turnwise.trainers.kit.reward_edits import with_signals
from turnwise.trainers.learn.collate import TrainingBatch, rewards_of


class PaidBatch(NamedTuple):
    """A batch with the recipe's rewards, its groups with the same, and what each reward paid, in the mean of trajectories."""

    batch: TrainingBatch
    groups: list[Group]
    metrics: dict[str, float]


def pay(batch: TrainingBatch, groups: Sequence[Group], rewards: Payer, asked: Collection[str]) -> PaidBatch:
    """Pay the groups of a batch by rewards in a row, which see their turns with the signals ``asked`` of the batch.

    Raises:
        RunError: they pay what no tensor can hold.
    """
    signals = {name: batch.turns.signals[name] for name in sorted(asked)}
    paid, by_part = rewards.pay(_seen(groups, signals) if signals else groups)
    turns = dataclasses.replace(batch.turns, reward_BK=rewards_of(paid))
    n = max(1, sum(map(len, groups)))
    told = {f"paid/{name}": x / n for name, x in by_part.items()}
    return PaidBatch(batch._replace(turns=turns), paid, told if len(rewards.rewards) > 1 else {})


def _seen(groups: Sequence[Group], signals: Mapping[str, Tensor]) -> list[Group]:
    """Return the groups as a reward sees them: each turn with its signals, those of a trajectory with every turn."""
    number_B = iter(range(sum(map(len, groups))))
    values = {name: x.tolist() for name, x in signals.items()}
    return [[_with(episode, next(number_B), values) for episode in group] for group in groups]


def _with(episode: Episode, b: int, values: Mapping[str, list[float] | list[list[float]]]) -> Episode:
    def at(name: str, k: int) -> float:
        row = values[name][b]
        return row[k] if isinstance(row, list) else row

    turns = range(len(episode.trajectory.turns))
    return with_signals(episode, [{name: at(name, k) for name in values} for k in turns])
