"""Marks of the sampled tokens that are thoughts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext
from turnwise.trainers.signal.forced import thought_mask


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"token_thought": turns_of(p) * (p.action_NK % 2 == 0)}


@component("signal", "thoughts", gives=("token_thought",), reads=("tokens",), stand_in=_stand_in)
def thoughts(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """1 for each token of the thoughts with which a turn begins, their closing tag among them, 0 for all others.

    >>> from turnwise.trainers.learn.toy_rows import training_batch
    >>> class See:
    ...     class tokenizer:
    ...         decode = staticmethod(lambda ids: "".join({2: "<think>", 3: "</think>", 4: "go"}[x] for x in ids))
    >>> thoughts(See, training_batch([[[-1, -1, -1]]]), []).token["token_thought"].tolist()
    [[0.0, 1.0, 1.0, 0.0]]
    """
    mask_RT = thought_mask(batch, see.tokenizer.decode)
    return Measured(token={"token_thought": mask_RT.to(torch.float64)})
