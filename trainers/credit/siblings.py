"""Baseline of what others earned after the very same history, and where there are none, the group from that turn on."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import (
    alone,
    cell_size,
    over_cells,
    peers_mean,
    prefix_cells,
    returns_to_go,
)


@component("credit", "siblings", bias="unbiased")
def siblings(batch: TurnBatch) -> Tensor:
    """Return-to-go minus the mean return-to-go of the peers that reached the same node of the prefix tree.

    A_{i,k} = G_{i,k} − b_{i,k}; b is the mean of G_{j,k} over the *other* trajectories of the group with the same
    states up to turn k, and where there is none, over all others (0 for one that has ended). Ours: the
    comparison of GiGPO (2505.10978) and TEMPO (2509.18314) without their biases. It is unbiased because the
    node that i has reached, and with it the choice of the baseline, is settled before the action a_k, and b
    is a function of the others alone. A group of one gets 0.

    Not for rollouts that share sampled turns (strategy ``tree``): there the others are not independent.

    Worked by hand: G = 1, 1 | 0, 0 | ½, ½. All start alike: 1 − ¼, 0 − ¾, ½ − ½. At the second turn the first
    two meet (1 − 0, 0 − 1), the third is alone there: ½ − (1 + 0)/2.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0, 0], [0, 0.5]], states=[[0, 1], [0, 1], [0, 2]])
    >>> rounded(siblings(batch))
    [[0.75, 1.0], [-0.75, -1.0], [0.0, 0.0]]
    """
    G_BK, mask_BK = returns_to_go(batch), batch.mask_BK
    node_BK = prefix_cells(batch)
    met_BK = cell_size(node_BK, mask_BK) > 1
    baseline_BK = torch.where(
        met_BK, over_cells(peers_mean, G_BK, node_BK, mask_BK), peers_mean(G_BK, batch.group_B)
    )
    return ((G_BK - baseline_BK) * mask_BK).masked_fill(alone(batch.group_B)[:, None], 0.0)
