"""Lite PPO: group mean, batch standard deviation."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import EPS, group_mean, group_std, over_turns


@component(
    "credit",
    "lite_ppo",
    paper="2508.08221",
    bias="biased: divides by the standard deviation of a batch that the trajectory itself belongs to",
)
def lite_ppo(batch: TurnBatch) -> Tensor:
    """Return minus the mean of the group, over the standard deviation of the whole batch.

    A_i = (R_i − mean_g R) / (std_batch R + 1e-6), sample standard deviation. Liu et al. 2025, "Tricks or
    Traps?": a group with hardly any spread is not blown up as in GRPO. Mixed environments should
    have returns on one scale, since they share the denominator.

    Worked by hand: R = [1, 0, 0, 0], [1, 1, 1, 0]: std √(2/7) = 0.534522.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> R = [[1], [0], [0], [0], [1], [1], [1], [0]]
    >>> rounded(lite_ppo(turn_batch(R, [0, 0, 0, 0, 1, 1, 1, 1])))
    [[1.403119], [-0.467706], [-0.467706], [-0.467706], [0.467706], [0.467706], [0.467706], [-1.403119]]
    """
    whole_B = torch.zeros_like(batch.group_B)
    deviation_B = batch.return_B - group_mean(batch.return_B, batch.group_B)
    return over_turns(deviation_B / (group_std(batch.return_B, whole_B) + EPS), batch)
