"""BranchGRPO: nodes of the tree compared with all nodes of the same depth."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import (
    cell_size,
    cells,
    following,
    group_mean,
    group_sum,
    last_turn,
    over_cells,
    over_turns,
    prefix_cells,
    signal,
    turn_cells,
)


@component(
    "credit",
    "branch_grpo",
    shared_turns=True,
    paper="2509.06040",
    asks=("fuse",),
    bias="biased: nodes are standardised among nodes with other parents, and a node's value contains its own",
)
def branch_grpo(batch: TurnBatch, *, fuse: str | None = None, skip: int = 0, skip_from: int = 1) -> Tensor:
    """The value of the node that a turn leads to, standardised over the nodes of that depth.

    V(node) = mean return of the rollouts through it, of a leaf its return. A_{i,k} = (V(child) − mean)/(std + 1e-8)
    over the distinct nodes that turn k of the group leads to, sample standard deviation; 0 where all are
    equal or there is only one. Li et al. 2025 (for diffusion), depth = turn. Mixing different parents
    confounds a turn with what came before; ``spo_tree`` compares with the own parent.
    With ``fuse`` V(node) = Σ softmax(l)·V(child) over the distinct children, l the signal of that name of the turn that leads to
    each (the paper: ``logp``). Of the ``skip`` turns from number ``skip_from`` on nothing is learned (the paper's pruning by
    depth; a schedule of ``credit.skip_from`` slides the window), though their nodes are counted; pruning by width is
    the filter `ranked`.

    Worked by hand: leaves 1, 0.5 | 0.2, 0.1: depth 1 has 0.75 and 0.15, depth 2 all four.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> leaves, states = [[0, 1], [0, 0.5], [0, 0.2], [0, 0.1]], [[0, 1], [0, 1], [0, 2], [0, 2]]
    >>> rounded(branch_grpo(turn_batch(leaves, states=states)))
    [[0.707107, 1.360897], [0.707107, 0.123718], [-0.707107, -0.61859], [-0.707107, -0.866025]]

    Children of log-probability −1 and −2 with returns 1 and 0.5: 0.7311 + 0.1345 = 0.8655, against 0.2 beside it.

    >>> leaves, states = [[0, 1], [0, 0.5], [0, 0.2]], [[0, 1], [0, 1], [0, 2]]
    >>> batch = turn_batch(leaves, states=states, signals={"logp": [[-3, -1], [-3, -2], [-4, -1]]})
    >>> [round(x, 4) for x in fused(batch, "logp")[0][:, 0].tolist()]
    [0.8655, 0.8655, 0.2]

    Raises:
        RecipeError: ``skip`` is below 0, or ``skip_from`` below 1.
    """
    if skip < 0 or skip_from < 1:
        raise RecipeError(
            f"credit 'branch_grpo': skip={skip} turns from number {skip_from} on are none.",
            "Give skip from 0 and skip_from from 1 on.",
        )
    mask_BK = batch.mask_BK
    child_BK, share_BK = fused(batch, fuse)
    depth_BK = turn_cells(batch)

    def total(x_BK: Tensor) -> Tensor:
        return over_cells(group_sum, x_BK * share_BK, depth_BK, mask_BK)

    nodes_BK = total(torch.ones_like(child_BK))
    deviation_BK = (child_BK - total(child_BK) / nodes_BK.clamp(min=1)) * mask_BK
    std_BK = (total(deviation_BK**2) / (nodes_BK - 1).clamp(min=1)).sqrt()
    number_K = torch.arange(1, mask_BK.shape[1] + 1, device=mask_BK.device)
    learned_BK = (std_BK > 1e-6) & ~((number_K >= skip_from) & (number_K < skip_from + skip))
    return torch.where(learned_BK, deviation_BK / (std_BK + 1e-8), 0.0)


def fused(batch: TurnBatch, by: str | None) -> tuple[Tensor, Tensor]:
    """The value of the node that each turn leads to, and the turn's share in it: 1 / how many go through, (B, K) both."""
    mask_BK, return_B = batch.mask_BK, batch.return_B
    node_BK = prefix_cells(batch)
    others_BK = following(cell_size(node_BK, mask_BK) - 1, torch.zeros_like(batch.group_B), mask_BK)
    share_BK = 1 / (1 + others_BK.to(return_B.dtype))
    if by is None:
        value_BK = over_cells(group_mean, over_turns(return_B, batch), node_BK, mask_BK)
        return following(value_BK, return_B, mask_BK), share_BK
    likely_BK = _of_children(signal(batch, by).to(return_B.dtype), node_BK, mask_BK)
    most_BK = over_cells(_group_max, likely_BK, node_BK, mask_BK)
    weight_BK = share_BK * (likely_BK - most_BK).exp()
    weight_BK = weight_BK / over_cells(group_sum, weight_BK, node_BK, mask_BK)
    child_BK, last_BK, next_B = torch.empty_like(likely_BK), last_turn(mask_BK), return_B
    for k in reversed(range(mask_BK.shape[1])):
        child_BK[:, k] = torch.where(last_BK[:, k], return_B, next_B)
        next_B = over_cells(group_sum, weight_BK[:, k] * child_BK[:, k], node_BK[:, k], mask_BK[:, k])
    return child_BK, share_BK


def _of_children(x_BK: Tensor, node_BK: Tensor, mask_BK: Tensor) -> Tensor:
    """The mean of ``x`` over all that go to the same child from a node; one that ends there is a child of its own, (B, K)."""
    number_B = torch.arange(len(x_BK), device=x_BK.device)
    child_BK = following(node_BK, number_B, mask_BK)
    return over_cells(group_mean, x_BK, cells(node_BK, child_BK, last_turn(mask_BK)), mask_BK)


def _group_max(x_N: Tensor, label_N: Tensor) -> Tensor:
    _, number_N = label_N.unique(return_inverse=True)
    most = x_N.new_full((len(x_N),), -torch.inf).scatter_reduce(0, number_N, x_N, "amax")
    return most[number_N]
