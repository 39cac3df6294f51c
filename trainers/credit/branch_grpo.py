"""BranchGRPO: nodes of the tree compared with all nodes of the same depth."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import (
    cell_size,
    following,
    group_mean,
    group_sum,
    over_cells,
    over_turns,
    prefix_cells,
    turn_cells,
)


@component(
    "credit",
    "branch_grpo",
    shared_turns=True,
    paper="2509.06040",
    bias="biased: nodes are standardised among nodes with other parents, and a node's value contains its own",
)
def branch_grpo(batch: TurnBatch) -> Tensor:
    """The value of the node that a turn leads to, standardised over the nodes of that depth.

    V(node) = mean return of the rollouts through it, of a leaf its return. A_{i,k} = (V(child) − mean)/(std + 1e-8)
    over the distinct nodes that turn k of the group leads to, sample standard deviation; 0 where all are
    equal or there is only one. Li et al. 2025 (for diffusion), depth = turn. Mixing different parents
    confounds a turn with what came before; ``spo_tree`` compares with the own parent.
    Left out: fusion by softmax of log-probabilities, pruning.

    Worked by hand: leaves 1, 0.5 | 0.2, 0.1: depth 1 has 0.75 and 0.15, depth 2 all four.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> leaves, states = [[0, 1], [0, 0.5], [0, 0.2], [0, 0.1]], [[0, 1], [0, 1], [0, 2], [0, 2]]
    >>> rounded(branch_grpo(turn_batch(leaves, states=states)))
    [[0.707107, 1.360897], [0.707107, 0.123718], [-0.707107, -0.61859], [-0.707107, -0.866025]]
    """
    mask_BK = batch.mask_BK
    node_BK = prefix_cells(batch)
    value_BK = over_cells(group_mean, over_turns(batch.return_B, batch), node_BK, mask_BK)
    child_BK = following(value_BK, batch.return_B, mask_BK)
    one_B = torch.ones_like(batch.return_B)
    share_BK = 1 / following(cell_size(node_BK, mask_BK).to(one_B.dtype), one_B, mask_BK).clamp(min=1)
    depth_BK = turn_cells(batch)

    def total(x_BK: Tensor) -> Tensor:
        return over_cells(group_sum, x_BK * share_BK, depth_BK, mask_BK)

    nodes_BK = total(torch.ones_like(child_BK))
    deviation_BK = (child_BK - total(child_BK) / nodes_BK.clamp(min=1)) * mask_BK
    std_BK = (total(deviation_BK**2) / (nodes_BK - 1).clamp(min=1)).sqrt()
    return torch.where(std_BK > 1e-6, deviation_BK / (std_BK + 1e-8), 0.0)
