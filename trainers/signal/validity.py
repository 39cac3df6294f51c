"""Validity of each action: whether the environment accepted it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of, wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"valid": turns_of(p) * (wave(p) > -0.9)}


@component("signal", "validity", gives=("valid",), reads=("outcomes",), stand_in=_stand_in)
def validity(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """1 where the environment accepted the action, 0 where it refused it.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> from turnwise.trainers.learn.toy_rows import training_batch
    >>> validity(None, training_batch([[[-1.0], [-1.0]]]), [[episode([0, 1])]]).turn["valid"].tolist()
    [[1.0, 1.0]]
    """
    return Measured({"valid": accepted(groups, batch.turns.mask_BK)})


def accepted(groups: Sequence[Group], mask_BK: Tensor) -> Tensor:
    """1 where the environment accepted the action, (B, K)."""
    valid_BK = torch.zeros(mask_BK.shape)
    for b, episode in enumerate(episode for group in groups for episode in group):
        for k, turn in enumerate(episode.trajectory.turns):
            valid_BK[b, k] = float(not turn.bad_action)
    return valid_BK
