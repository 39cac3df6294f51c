"""Rank-GRPO: returns-to-go standardised among the peers at the same turn."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_z, over_cells, returns_to_go, turn_cells


@component(
    "credit",
    "rank_grpo",
    paper="2510.20150",
    bias="biased: standardised per turn over few peers, among them the trajectory itself",
)
def rank_grpo(batch: TurnBatch) -> Tensor:
    """Return-to-go, standardised over the trajectories of the group that play the same turn.

    A_{i,k} = (G_{i,k} − mean_j G_{j,k}) / (std_j G_{j,k} + 1e-4). Zhu et al. 2025, where k is the rank of
    an item in a recommended list and G = Σ_{l≥k} hit_l / log2(l + 1); here an item is a turn. Left out: the
    geometric-mean ratio per item, which is a loss.

    Worked by hand (hits 1,0,1 | 0,0,1 | 1,1,0 with those weights): first ranks 1.5, 0.5, 1.6309.

    >>> from math import log2
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1, 0, 0.5], [0, 0, 0.5], [1, 1 / log2(3), 0]])
    >>> rounded(rank_grpo(batch))
    [[0.468209, -0.576588, 0.57715], [-1.148031, -0.576588, 0.57715], [0.679823, 1.153175, -1.154301]]
    """

    def standardise(x: Tensor, group: Tensor) -> Tensor:
        return group_z(x, group, eps=1e-4)

    return over_cells(standardise, returns_to_go(batch), turn_cells(batch), batch.mask_BK)
