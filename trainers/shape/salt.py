"""SALT: steps that good and bad rollouts share are neutral."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import cells, following, group_mean, over_cells
from turnwise.trainers.kit.token_credit import of_turns_alone


@component(
    "shape",
    "salt",
    paper="2510.20022",
    bias="biased: a step's advantage is averaged with those of the rollouts that took it too",
)
def salt(credit: Tensor | TokenCredit, batch: TurnBatch) -> Tensor:
    """The advantage of each step, averaged over the rollouts of the group that took the same step.

    The rollouts of a group form a graph whose nodes are states; steps between the same two states are one edge, which
    gets the mean of its members' A. Steps that nobody else took, and last steps, keep their own. Li et al. 2025, over
    GRPO or RLOO. Advantages that differ within a turn are refused: an edge has no tokens.

    An interpretation: the released text merges steps with the same recent history, action and
    observation; here two turns are the same step when they lead from the same state to the same state.

    Worked by hand: outcomes 1, 0, 1, 0; rollouts 1–3 share the first step: A = ±0.866, mean 0.2887.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.credit.rloo import rloo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0, 0], [0, 1], [0, 0]], states=[[0, 1], [0, 1], [0, 1], [0, 2]])
    >>> rounded(salt(grpo(batch), batch))
    [[0.288675, 0.866024], [0.288675, -0.866024], [0.288675, 0.866024], [-0.866024, -0.866024]]
    >>> rounded(salt(rloo(batch), batch)[:, :1])
    [[0.222222], [0.222222], [0.222222], [-0.666667]]
    """
    advantage_BK = of_turns_alone(credit, "salt", "averages whole turns")
    state_BK = cells(batch.group_B[:, None], batch.state_BK)
    own_B = -1 - torch.arange(len(advantage_BK), device=state_BK.device)  # leads where nobody else goes
    edge_BK = cells(state_BK, following(state_BK, own_B, batch.mask_BK))
    return over_cells(group_mean, advantage_BK, edge_BK, batch.mask_BK)
