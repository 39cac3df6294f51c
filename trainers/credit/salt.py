"""SALT: steps that good and bad rollouts share are neutral."""

from typing import Literal

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import (
    alone,
    cells,
    following,
    group_mean,
    group_z,
    over_cells,
    over_turns,
    peers_mean,
)


@component(
    "credit",
    "salt",
    paper="2510.20022",
    bias="biased: a step's advantage is averaged with those of the rollouts that took it too",
)
def salt(batch: TurnBatch, *, base: Literal["grpo", "rloo"] = "grpo") -> Tensor:
    """A trajectory's advantage on each of its steps, averaged over the rollouts that took the same step.

    A_i = GRPO's or RLOO's advantage; the rollouts of a group form a graph whose nodes are states; steps
    between the same two states are one edge, which gets the mean of its members' A. Steps that nobody
    else took, and last steps, keep their own. Li et al. 2025.

    An interpretation: the released text merges steps with the same recent history, action and
    observation; here two turns are the same step when they lead from the same state to the same state.

    Worked by hand: outcomes 1, 0, 1, 0; rollouts 1–3 share the first step: A = ±0.866, mean 0.2887.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0, 0], [0, 1], [0, 0]], states=[[0, 1], [0, 1], [0, 1], [0, 2]])
    >>> rounded(salt(batch))
    [[0.288675, 0.866024], [0.288675, -0.866024], [0.288675, 0.866024], [-0.866024, -0.866024]]
    >>> rounded(salt(batch, base="rloo")[:, :1])
    [[0.222222], [0.222222], [0.222222], [-0.666667]]
    """
    if base == "grpo":
        advantage_B = group_z(batch.return_B, batch.group_B)
    else:
        advantage_B = batch.return_B - peers_mean(batch.return_B, batch.group_B)
        advantage_B = advantage_B.masked_fill(alone(batch.group_B), 0.0)
    state_BK = cells(batch.group_B[:, None], batch.state_BK)
    own_B = -1 - torch.arange(len(advantage_B), device=advantage_B.device)  # leads where nobody else goes
    edge_BK = cells(state_BK, following(state_BK, own_B, batch.mask_BK))
    return over_cells(group_mean, over_turns(advantage_B, batch), edge_BK, batch.mask_BK)
