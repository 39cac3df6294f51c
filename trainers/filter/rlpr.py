"""RLPR's filter: groups whose rewards are nearly alike are dropped, by a bound that follows the run."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_std


@component("filter", "rlpr", paper="2506.18254", needs=("spread_floor",))
def rlpr(batch: TurnBatch, credit: Tensor | TokenCredit) -> Tensor:
    """Weight 0 for groups whose returns have a sample deviation below the signal `spread_floor`, 1 for the others.

    RLPR (Yu et al. 2025), whose rewards are probabilities, so that groups are hardly ever all alike.

    Worked by hand: deviations 0, .1414, .7071 and a floor of .5.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> batch = turn_batch([[0], [0], [0.2], [0.4], [0], [1]], [0, 0, 1, 1, 2, 2], signals={"spread_floor": [[0.5]] * 6})
    >>> rlpr(batch, batch.reward_BK).tolist()
    [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    """
    floor_B = batch.signals["spread_floor"][:, :1].sum(1)  # it is the same on every turn
    return (group_std(batch.return_B, batch.group_B) >= floor_B).to(torch.float32)
