"""Trees: what a turn was followed by, against what else was tried from the same state."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, returns_to_go, signal


@component("credit", "tree", shared_turns=True, needs=("edge", "leaf_weight"), bias="unbiased")
def tree(batch: TurnBatch) -> Tensor:
    """Return-to-go minus the mean return-to-go of the turn's siblings, weighted by the leaf's share of its tree.

    A_{i,k} = w_i·(G_{i,k} − b_{i,k}). Leaves that share turn k carry one sample of it, so none of them may stand
    against another: b is the w-weighted mean of G_{j,k} over the leaves that do not share it; where the
    strategy branched at k, over those of them that share turn k − 1, which are other answers to the very
    same state. A leaf that has ended counts as G = 0. Where all others share
    turn k nothing is subtracted; a group of one gets 0.

    Ours, for the strategy ``tree``. Unbiased where the branching turns are fixed: w undoes the branching, so
    that the leaves weigh as the policy would have played them, and b does not depend on the action a_{i,k}.
    Without w, episodes that end before a branch would count too much or too little: a stopping-time bias.
    Without a tree (``edge`` 0 throughout) it is ``return_to_go``.

    Worked by hand: a root that branches at its second turn (returns 1 and 0, w = ½ each), and one that ended
    before it (return ½, w = 1), w doubled: first turn 1·(1 − ½), 1·(0 − ½), 2·(½ − ½); second 1 − 0, 0 − 1.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> grown = {"edge": [[1, 0], [1, 0], [0]], "leaf_weight": [[1, 1], [1, 1], [2]]}
    >>> rounded(tree(turn_batch([[0, 1], [0, 0], [0.5]], signals=grown)))
    [[0.5, 1.0], [-0.5, -1.0], [0.0, 0.0]]
    """
    mask_BK, edge_BK = batch.mask_BK, signal(batch, "edge") * batch.mask_BK
    if not mask_BK.any():
        return torch.zeros_like(batch.reward_BK)
    weight_BK = signal(batch, "leaf_weight") * mask_BK
    weight_B = weight_BK[:, 0]
    G_BK = returns_to_go(batch)
    peers_BB = (batch.group_B[:, None] == batch.group_B) & ~torch.eye(
        len(G_BK), dtype=torch.bool, device=G_BK.device
    )
    baseline_BK = torch.zeros_like(G_BK)
    together_BB = peers_BB  # those that share all turns before this one
    for k in range(G_BK.shape[1]):
        shares_BB = together_BB & (edge_BK[:, k, None] == edge_BK[:, k]) & (edge_BK[:, k, None] != 0)
        siblings_BB = together_BB & ~shares_BB & mask_BK[:, k]
        others_BB = torch.where(siblings_BB.any(1, keepdim=True), siblings_BB, peers_BB & ~shares_BB)
        share_BB = others_BB * weight_B
        baseline_BK[:, k] = (share_BB @ G_BK[:, k]) / share_BB.sum(1).clamp(min=1e-12)
        together_BB = shares_BB
    advantage_BK = weight_BK * (G_BK - baseline_BK)
    return advantage_BK.masked_fill(alone(batch.group_B)[:, None], 0.0) * mask_BK
