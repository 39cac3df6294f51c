"""PPO's clip on all of the ratio of the policy, untold, to who sampled, told."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import bounded, token_mean


@component("loss", "told_clip", slope="-A", paper="2506.13923")
def told_clip(batch: TokenBatch, *, low: float = 0.2, high: float = 0.2) -> TokenLoss:
    """max(−ρA, −clip(ρ, 1 − low, 1 + high)·A) with ρ = π/π_sampled, π_sampled as the engine reported it.

    Guide (Nath et al. 2025): what was sampled under a prompt with a hint is learned under the one without, by one ratio of the two.
    `clip` has π_old without the hint in the denominator, and leaves the rest to a correction, outside of the clip. Made for the tokens
    of a guide: `guide: [{name: hint, loss: [told_clip], correction: none}]`. It holds the correction in it, so that another one is
    refused. Log-ratios are within ±20; where the log-probability of a token is unknown its ratio is π/π_old.

    Metric: ``clip_told`` (share of tokens held back).

    Worked by hand with log π = −2 and log π_sampled = −1.2, so that ρ = 0.449329: for A = 1.5 min(0.673993, 1.2), for A = −1.5
    min(−0.673993, −1.2).

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> batch = token_batch([[-2, -2]], [[1.5, -1.5]], behaviour_logp=[[-1.2, -1.2]])
    >>> rounded(told_clip(batch).loss_RT, 4)
    [[-0.674, 1.2]]
    """
    mask_RT = batch.mask_RT
    ratio_RT = bounded(batch.logp_RT - batch.behaviour_logp_RT, mask_RT).exp()
    plain_RT = -ratio_RT * batch.advantage_RT
    clipped_RT = -ratio_RT.clamp(1 - low, 1 + high) * batch.advantage_RT
    metrics = {"clip_told": token_mean(clipped_RT > plain_RT, mask_RT)}
    return TokenLoss(torch.maximum(plain_RT, clipped_RT) * mask_RT, metrics)
