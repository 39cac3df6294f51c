"""HGPO: turns in the same state compared at several depths of common history."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import EPS, cell_size, cells, group_mean, over_cells, returns_to_go


@component(
    "credit",
    "hgpo",
    paper="2602.22817",
    bias="biased: discounted, and standardised within groups that the turn itself belongs to",
)
def hgpo(batch: TurnBatch, *, history: int = 2, alpha: float = 1.0, discount: float = 0.95) -> Tensor:
    """Return-to-go among turns with the same state, the same last two states, … — the longer the more weight.

    For d = 1 … ``history`` + 1 the turns of a group whose last d states agree form a cell; a_d is G
    standardised in it (population std + 1e-6). A_{i,k} = Σ_d w_d·a_d, w_d ∝ (d + 1)^α over the depths at
    which the turn is not alone. He et al. 2026; depths and weights as in the released code.

    Left out: that code's rule of also skipping a depth whose a_d happens to be 0.

    Worked by hand: two trajectories share s0, s1; a third comes to s1 from s2. In the cell of s1 G is
    1, 0, 0 (mean 1/3, std √2/3); of (s0, s1) it is 1, 0 (std 1/2). Weights 2/5 and 3/5:
    first 2/5·√2 + 3/5, second −2/5·√½ − 3/5, third −√½.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0, 0], [0, 0]], states=[[0, 1], [0, 1], [2, 1]])
    >>> rounded(hgpo(batch, discount=1.0)[:, 1:])
    [[1.165683], [-0.882841], [-0.707105]]
    """

    def standardise(x: Tensor, group: Tensor) -> Tensor:
        deviation = x - group_mean(x, group)
        return deviation / (group_mean(deviation**2, group).sqrt() + EPS)

    G_BK, mask_BK = returns_to_go(batch, discount), batch.mask_BK
    total_BK, weight_BK = torch.zeros_like(G_BK), torch.zeros_like(G_BK)
    cell_BK = cells(batch.group_B[:, None], batch.state_BK)
    for depth in range(1, min(history + 1, mask_BK.shape[1]) + 1):
        if depth > 1:  # one more state back; turns without so long a history have no cell
            cell_BK = cells(cell_BK, batch.state_BK.roll(depth - 1, dims=1))
        deep_BK = mask_BK & (torch.arange(mask_BK.shape[1], device=mask_BK.device) >= depth - 1)
        shared_BK = cell_size(cell_BK, deep_BK) > 1
        w = float(depth + 1) ** alpha
        total_BK += w * over_cells(standardise, G_BK, cell_BK, shared_BK)
        weight_BK += w * shared_BK
    return total_BK / weight_BK.where(weight_BK > 0, 1.0)
