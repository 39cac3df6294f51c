"""Everything is trained on."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch


@component("filter", "any")
def any_group(batch: TurnBatch, credit: Tensor | TokenCredit) -> Tensor:
    """Weight 1 for every trajectory.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> batch = turn_batch([[1], [1]])
    >>> any_group(batch, torch.zeros(2, 1)).tolist()
    [1.0, 1.0]
    """
    return torch.ones(len(batch.group_B))
