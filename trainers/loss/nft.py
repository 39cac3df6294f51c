"""Supervised learning from successes and from failures: a failure's likelihood is that of an implied bad policy."""

from typing import Literal

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import group_members, of_trajectory
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, token_mean

LEAST, MOST = 0.02, 0.98  # of the success rate, as in the paper's code


@component(
    "loss",
    "nft",
    objective="the likelihood of successes under π, and of failures under what π leaves of π_old",
    paper="2505.18116",
    whole=True,
    slope="own",
)
def nft(
    batch: WholeBatch,
    *,
    by: Literal["none", "rate", "std"] = "rate",
    floor: float = 1.0,
    failures: float = 1.0,
) -> WholeLoss:
    """−log ρ of a success's tokens; −log((1 − q·ρ)/(1 − q)) of a failure's, with q the group's success rate.

    ρ = exp(min(log π − log π_old, 10)). The argument x of the second logarithm counts as max(x, floor), with the slope of
    x (straight through). Negative-aware fine-tuning (Chen et al. 2025), eq. 9 and 10; per token, and by the reducer's weights
    (the paper's is a constant: `reduce: fixed_length`). Groups are weighed ``by`` ``rate`` 1 − q (on fresh samples
    its slope is Dr.GRPO's: −(1 − q) and q), ``std`` √((1 − q)/q) (GRPO's), or not. ``failures`` scales those; 0 is
    rejection sampling. q is of the group as it was played and within 0.02 and 0.98; a group that succeeded always or never
    gives 0. Advantages are not used: the credit rule matters to the filter alone.

    Metrics: ``held`` (share of failures' tokens at the floor), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with q = ¼: a success at ρ = 1.2 gives −0.182322; a failure at 0.8 gives −log 1.066667 = −0.064539, at
    1.2 it is at the floor, 0. Each group of four has this token and three of ρ = 1.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> def one(row, ratio, weight):
    ...     logp = [[log(ratio) if i == row else 0.0] for i in range(4)]
    ...     batch = whole_batch(logp, old_logp=[[0]] * 4, success=[1, 0, 0, 0])
    ...     return round(4 * nft(batch, by=weight).loss.item(), 6) + 0.0
    >>> [one(0, 1.2, "none"), one(1, 0.8, "none"), one(1, 1.2, "none"), one(1, 0.8, "rate"), one(0, 1.2, "std")]
    [-0.182322, -0.064539, 0.0, -0.048404, -0.31579]
    """
    rate_B, weight_B = torch.zeros_like(batch.return_B), torch.zeros_like(batch.return_B)
    for member_M in group_members(batch, played=True):
        share = batch.success_B[member_M].to(rate_B.dtype).mean()
        if 0 < share < 1:
            q = share.clamp(LEAST, MOST)
            rate_B[member_M] = q
            weight_B[member_M] = {"none": torch.ones_like(q), "rate": 1 - q, "std": ((1 - q) / q).sqrt()}[by]
    log_ratio_RT, mask_RT = log_ratio(batch), batch.mask_RT
    risen_RT = log_ratio_RT.clamp(max=10)
    good_RT, q_RT = of_trajectory(batch.success_B, batch), of_trajectory(rate_B, batch)
    x_RT = (1 - q_RT * risen_RT.exp()) / (1 - q_RT)
    raised_RT = x_RT + (x_RT.clamp(min=floor) - x_RT).detach()
    loss_RT = torch.where(good_RT, -risen_RT, -failures * raised_RT.log())
    bad_RT = mask_RT & ~good_RT & (q_RT > 0)
    metrics = {"held": token_mean(x_RT < floor, bad_RT), "kl_old": k3_of_old(log_ratio_RT, mask_RT)}
    weight_RT = batch.weight_RT * of_trajectory(weight_B, batch) * mask_RT
    return WholeLoss((weight_RT * loss_RT).sum(), metrics)
