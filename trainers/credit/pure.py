"""PURE: a trajectory is worth its worst turn."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, over_turns, peers_mean, reverse_cumsum


@component(
    "credit",
    "pure",
    paper="2504.15275",
    bias="biased: it climbs (nearly) the smallest reward instead of the sum, with a baseline per turn left",
)
def pure(batch: TurnBatch, *, temperature: float = 0.1) -> Tensor:
    """Min-form credit: turns up to the worst one get its reward, later ones hardly anything.

    w = softmax_k(−r_k/T), r*_k = w_k·r_k (their sum is nearly min r);  A_{i,k} = Σ_{l≥k} (r*_{i,l} − b_i),
    b_i = mean over peers of (Σ r* / number of turns). Cheng et al. 2025, in step mode. Made for scores of a
    process judge, which as a sum invite filler steps; here every turn reward is taken as such a score.
    Left out: the verifier's reward, the token mode of the baseline.

    Worked by hand for [0.9, −0.8, 0.5]: r* = [0, −0.8, 0], and the other's Σ r*/3 = 0.278:
    −0.8 − 3·0.278, −0.8 − 2·0.278, 0 − 0.278.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(pure(turn_batch([[0.9, -0.8, 0.5], [0.9, 0.8, 0.85]])))
    [[-1.633989, -1.355992, -0.277996], [1.633989, 1.199632, 0.527782]]
    """
    mask_BK = batch.mask_BK
    weight_BK = (-batch.reward_BK / temperature).masked_fill(~mask_BK, -torch.inf).softmax(-1)
    least_BK = weight_BK.nan_to_num() * batch.reward_BK  # no turns: softmax of nothing
    pace_B = least_BK.sum(-1) / batch.length_B.clamp(min=1)
    baseline_BK = over_turns(peers_mean(pace_B, batch.group_B), batch)
    advantage_BK = reverse_cumsum((least_BK - baseline_BK) * mask_BK) * mask_BK
    return advantage_BK.masked_fill(alone(batch.group_B)[:, None], 0.0)
