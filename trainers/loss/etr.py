"""A clip that is wider where the advantage is large and the task is in the balance."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import group_members, of_trajectory
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, surrogate, token_mean


@component("loss", "etr", paper="2601.03723", whole=True, slope="-A")
def etr(
    batch: WholeBatch, *, low: float = 0.2, high: float = 0.2, by_advantage: float = 0.5, by_task: float = 0.5
) -> WholeLoss:
    """PPO's clip, whose bounds are low and high times (1 + a·tanh |A|)·(1 + v·(4p(1 − p) − ½)).

    p is the success rate of the group as it was played, a is ``by_advantage``, v ``by_task``. Of *ETR: elastic trust regions*
    only the idea was read, width by |A| and by the group's variance: this expression and its constants are ours.

    Metrics: ``clipped`` (share of tokens held back), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with |A| = 1 and p = ½: 0.2·(1 + 0.5·0.761594)·1.25 = 0.345199, so that ρ = 2 counts as 1.345199; of two
    tokens the other fails with A = −1 and ρ = 1.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[log(2)], [0]], [[1], [-1]], old_logp=[[0], [0]], success=[1, 0])
    >>> round(etr(batch).loss.item(), 6)
    -0.1726
    """
    rate_B = torch.zeros_like(batch.return_B)
    for member_M in group_members(batch, played=True):
        rate_B[member_M] = batch.success_B[member_M].to(rate_B.dtype).mean()
    width_RT = (1 + by_advantage * batch.advantage_RT.abs().tanh()) * of_trajectory(
        1 + by_task * (4 * rate_B * (1 - rate_B) - 0.5), batch
    )
    log_ratio_RT = log_ratio(batch)
    ratio_RT = log_ratio_RT.exp()
    loss_RT = surrogate(ratio_RT, batch.advantage_RT, 1 - low * width_RT, 1 + high * width_RT)
    held_RT = loss_RT > -ratio_RT * batch.advantage_RT
    metrics = {
        "clipped": token_mean(held_RT, batch.mask_RT),
        "kl_old": k3_of_old(log_ratio_RT, batch.mask_RT),
    }
    return WholeLoss((batch.weight_RT * loss_RT * batch.mask_RT).sum(), metrics)
