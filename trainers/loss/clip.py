"""The clipped surrogate of PPO, with clip-higher and dual clip."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, token_mean


@component("loss", "clip", slope="-A", paper="1707.06347")
def clip(batch: TokenBatch, *, low: float = 0.2, high: float = 0.2, dual: float | None = 3.0) -> TokenLoss:
    """PPO's clipped policy-gradient loss per token.

    ρ = exp(log π − log π_old);  l = max(−ρA, −clip(ρ, 1 − low, 1 + high)·A), and where A < 0 also
    l = min(l, −dual·A). Schulman et al. 2017, eq. 7; ``high`` > ``low`` is clip-higher (DAPO, 2503.14476);
    the bound for negative advantages is Ye et al. 2020 (1912.09729). Before any staleness ρ = 1 and
    ∂l/∂log π = −A.

    Metrics: ``clip_low``, ``clip_high``, ``clip_dual`` (shares of tokens held back), ``kl_old`` (k3 estimate of
    KL(π_old ‖ π)).

    Worked by hand with ρ = 1.5, 0.5, 0.5, 5 and A = 1, 1, −1, −1:

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> batch = token_batch(
    ...     [[log(1.5), log(0.5), log(0.5), log(5.0)]], [[1, 1, -1, -1]], old_logp=[[0, 0, 0, 0]]
    ... )
    >>> rounded(clip(batch).loss_RT)
    [[-1.2, -0.5, 0.8, 3.0]]
    """
    mask_RT, advantage_RT = batch.mask_RT, batch.advantage_RT
    log_ratio_RT = log_ratio(batch)
    ratio_RT = log_ratio_RT.exp()
    plain_RT = -ratio_RT * advantage_RT
    clipped_RT = -ratio_RT.clamp(1 - low, 1 + high) * advantage_RT
    loss_RT = torch.maximum(plain_RT, clipped_RT)
    held_RT = clipped_RT > plain_RT
    metrics = {
        "clip_low": token_mean(held_RT & (ratio_RT < 1), mask_RT),
        "clip_high": token_mean(held_RT & (ratio_RT > 1), mask_RT),
        "kl_old": k3_of_old(log_ratio_RT, mask_RT),
    }
    if dual is not None:
        bound_RT = -dual * advantage_RT
        bounded_RT = (advantage_RT < 0) & (loss_RT > bound_RT)
        loss_RT = torch.where(bounded_RT, bound_RT, loss_RT)
        metrics["clip_dual"] = token_mean(bounded_RT, mask_RT)
    return TokenLoss(loss_RT * mask_RT, metrics)
