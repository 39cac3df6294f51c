"""A trust region of probabilities in place of one of ratios."""

from typing import Literal

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, token_mean

NEVER = 1e-7  # of probabilities, so that the logarithm of a rest of 0 is finite


@component("loss", "dppo", slope="-A", paper="2602.04879")
def dppo(
    batch: TokenBatch,
    *,
    divergence: Literal["tv", "kl"] = "tv",
    low: float = 0.15,
    high: float = 0.15,
    cap: float = 20.0,
) -> TokenLoss:
    """−A·sg[min(ρ, cap)]·log π, where the step away from π_old is not yet too large; 0 where it is.

    ρ = π/π_old. ``tv``: a token is let go where A > 0 and π − π_old > high, or A ≤ 0 and π_old − π > low. ``kl``: the same
    with the divergence of the two-valued distributions (this token or another) KL(π_old ‖ π) in place of |π − π_old|.
    *Rethinking the Trust Region in LLM Reinforcement Learning* 2026. A rare token may grow many times over, which a clipped
    ratio forbids; a likely one may not lose 0.15. Left out: the form that looks at the likeliest tokens of the vocabulary.

    Metrics: ``masked`` (share of tokens that are let go), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand: 0.01 → 0.05 is kept with ρ = 5; 0.5 → 0.7 with A = 1 is not; 0.5 → 0.4 with A = −1 is, with ρ = 0.8.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> now, before = [log(p) for p in (0.05, 0.7, 0.4)], [log(p) for p in (0.01, 0.5, 0.5)]
    >>> rounded(dppo(token_batch([now], [[1, 1, -1]], old_logp=[before])).loss_RT)
    [[14.978661, 0.0, -0.733033]]
    """
    log_ratio_RT, mask_RT = log_ratio(batch), batch.mask_RT
    now_RT, old_RT = batch.logp_RT.detach().exp(), batch.old_logp_RT.exp()
    size_RT = (now_RT - old_RT).abs() if divergence == "tv" else _binary_kl(old_RT, now_RT)
    up_RT = (batch.advantage_RT > 0) & (now_RT > old_RT) & (size_RT > high)
    down_RT = (batch.advantage_RT <= 0) & (now_RT < old_RT) & (size_RT > low)
    far_RT = up_RT | down_RT
    weight_RT = log_ratio_RT.exp().detach().clamp(max=cap) * ~far_RT
    metrics = {"masked": token_mean(far_RT, mask_RT), "kl_old": k3_of_old(log_ratio_RT, mask_RT)}
    return TokenLoss(-batch.advantage_RT * weight_RT * batch.logp_RT * mask_RT, metrics)


def _binary_kl(p: Tensor, q: Tensor) -> Tensor:
    """KL between two chances."""
    p, q = p.clamp(NEVER, 1 - NEVER), q.clamp(NEVER, 1 - NEVER)
    return p * torch.log(p / q) + (1 - p) * torch.log((1 - p) / (1 - q))
