"""Clip bounds that are wide for unlikely tokens."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, surrogate, token_mean


@component("loss", "dynamic_clip", slope="-A", paper="2509.02333")
def dynamic_clip(batch: TokenBatch, *, low: float = 0.16, high: float = 0.2, cap: float = 10.0) -> TokenLoss:
    """PPO's clip, with bounds from the token's old probability q, and a dual clip.

    Lower bound ½ + ½·√max(1 − 4·low/q, 0), upper bound min(½ + ½·√(1 + 4·high/q), cap): both keep |π − q|·ρ within low and
    high. Where A < 0 also l = min(l, −cap·A). DCPO (Yang et al. 2025), eq. 8 and 10; its advantages are `credit: dcpo`.

    Metrics: ``clipped`` (share of tokens held back, by either bound), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand: q = 0.04, 0.5, 0.9 have the bounds 0.5 to 2.791288, 0.5 to 1.306226, 0.768742 to 1.187184. Of ratios
    far above and below these remain.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> old = [[log(0.04), log(0.5), log(0.9)]] * 2
    >>> now = [[x + 1.5 for x in old[0]], [x - 1.5 for x in old[1]]]
    >>> rounded(dynamic_clip(token_batch(now, [[1] * 3, [-1] * 3], old_logp=old)).loss_RT)
    [[-2.791288, -1.306226, -1.187184], [0.5, 0.5, 0.768742]]
    """
    log_ratio_RT, mask_RT, advantage_RT = log_ratio(batch), batch.mask_RT, batch.advantage_RT
    q_RT = batch.old_logp_RT.clamp(min=-20).exp()
    least_RT = 0.5 + 0.5 * (1 - 4 * low / q_RT).clamp(min=0).sqrt()
    most_RT = (0.5 + 0.5 * (1 + 4 * high / q_RT).sqrt()).clamp(max=cap)
    ratio_RT = log_ratio_RT.exp()
    loss_RT = surrogate(ratio_RT, advantage_RT, least_RT, most_RT)
    held_RT = loss_RT > -ratio_RT * advantage_RT
    bound_RT = -cap * advantage_RT
    bounded_RT = (advantage_RT < 0) & (loss_RT > bound_RT)
    loss_RT = torch.where(bounded_RT, bound_RT, loss_RT)
    metrics = {
        "clipped": token_mean(held_RT | bounded_RT, mask_RT),
        "kl_old": k3_of_old(log_ratio_RT, mask_RT),
    }
    return TokenLoss(loss_RT * mask_RT, metrics)
