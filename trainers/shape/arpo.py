"""ARPO: what branches share gets the mean of their advantages."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import cells, following, group_mean, over_cells, prefix_cells
from turnwise.trainers.kit.token_credit import of_turns_alone


@component(
    "shape",
    "arpo",
    shared_turns=True,
    paper="2507.19849",
    bias="biased: averaged over the branches of a prefix",
)
def arpo(credit: Tensor | TokenCredit, batch: TurnBatch) -> Tensor:
    """The advantage of each turn, averaged over the trajectories that share it and everything before it.

    A′_{i,k} = mean of A_{j,k} over the trajectories of the group whose states agree up to and including the one
    that turn k leads to. Dong et al. 2025, "hard" advantage attribution over GRPO (the paper's "soft" one is GRPO on
    duplicated prefixes). Made for rollouts that branch where entropy jumps. Advantages that differ within a turn are
    refused.

    Ours: prefixes are sequences of states, not of tokens; last turns keep their own advantage. The rule is
    from memory of the paper.

    Worked by hand: returns 1, 0, 0; the first two share their first step: A = 1.1547, −0.57735, −0.57735.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0, 0], [0, 0]], states=[[0, 1], [0, 1], [0, 2]])
    >>> rounded(arpo(grpo(batch), batch))
    [[0.288675, 1.154699], [0.288675, -0.577349], [-0.577349, -0.577349]]
    """
    advantage_BK = of_turns_alone(credit, "arpo", "averages whole turns")
    node_BK = prefix_cells(batch)
    own_B = -1 - torch.arange(len(batch.group_B), device=node_BK.device)  # leads where nobody else goes
    edge_BK = cells(node_BK, following(node_BK, own_B, batch.mask_BK))
    return over_cells(group_mean, advantage_BK, edge_BK, batch.mask_BK)
