"""ReST-GRPO's filter: groups whose returns hardly differ are dropped."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.groups import group_mean


@component("filter", "rest_rl", paper="2508.19576")
def rest_rl(batch: TurnBatch, credit: Tensor | TokenCredit, *, least: float = 0.05) -> Tensor:
    """Weight 0 for the groups whose returns deviate by less than ``least``, 1 for the others.

    ReST-RL (Zhoubian et al. 2025) keeps a task if the population's deviation of its samples' rewards is 0.05 or more: GRPO divides by it, so that a
    difference of nothing would be learned as one of much. The paper filters its data before it trains; here each group just
    played is asked. The partial states of the best sample, its other half, are the guide `rest_rl`.

    Worked by hand: 1, 1, 1 and 0.9 deviate by 0.0433, 1 and 0.9 by 0.05.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> batch = turn_batch([[1], [1], [1], [0.9], [1], [0.9]], [0, 0, 0, 0, 1, 1])
    >>> rest_rl(batch, batch.reward_BK).tolist(), rest_rl(batch, batch.reward_BK, least=0.04).tolist()
    ([0.0, 0.0, 0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0])

    Raises:
        RecipeError: ``least`` is below 0.
    """
    not_below_zero("filter 'rest_rl'", least=least)
    apart_B = batch.return_B.double() - group_mean(batch.return_B.double(), batch.group_B)
    deviation_B = group_mean(apart_B**2, batch.group_B).sqrt()
    return (deviation_B >= least - 1e-6).to(torch.float32)
