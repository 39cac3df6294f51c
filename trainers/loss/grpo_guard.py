"""PPO's clip on ratios that are centred turn by turn, so that both bounds act at every turn."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, surrogate, token_mean


@component("loss", "grpo_guard", paper="2510.22319", whole=True, slope="-A")
def grpo_guard(batch: WholeBatch, *, low: float = 0.2, high: float = 0.2) -> WholeLoss:
    """The clipped surrogate with exp(d − mean of d at the same turn index) as its ratio, d = log π − log π_old.

    The mean is over the minibatch's tokens of turns of this index, without gradient. GRPO-Guard (2025) normalises the
    ratios of a flow model's steps, whose mean drifts with the step; turns for steps, and the mean for its closed form,
    are ours.

    Metrics: ``clipped`` (share of tokens held back), ``drift`` (largest |mean of d| of a turn index), ``kl_old``.

    Worked by hand with d = 0.03, −0.01, 0.04, 0.02 in one turn: ratios 1.010050, 0.970446, 1.020201, 1.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[0.03, -0.01, 0.04, 0.02]], [[1, 0, 0, 0]], old_logp=[[0] * 4])
    >>> round(grpo_guard(batch).loss.item() * 4, 6)
    -1.01005
    """
    log_ratio_RT, mask_RT = log_ratio(batch), batch.mask_RT
    mean_RT, drift = torch.zeros_like(log_ratio_RT), torch.zeros((), dtype=log_ratio_RT.dtype)
    for k in batch.turn_RT[mask_RT].unique():
        at_RT = mask_RT & (batch.turn_RT == k)
        mean = log_ratio_RT.detach()[at_RT].mean()
        mean_RT[at_RT], drift = mean, torch.maximum(drift, mean.abs())
    ratio_RT = (log_ratio_RT - mean_RT).exp()
    loss_RT = surrogate(ratio_RT, batch.advantage_RT, 1 - low, 1 + high) * mask_RT
    held_RT = loss_RT > -ratio_RT * batch.advantage_RT
    metrics = {
        "clipped": token_mean(held_RT, mask_RT),
        "drift": drift,
        "kl_old": k3_of_old(log_ratio_RT, mask_RT),
    }
    return WholeLoss((batch.weight_RT * loss_RT).sum(), metrics)
