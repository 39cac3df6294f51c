"""Truncated importance sampling between the engine that sampled and the trainer."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch
from turnwise.trainers.kit.tokens import Level, bounded, unit_sum, units


@component("correction", "tis")
def tis(batch: TokenBatch, *, cap: float = 2.0, level: Level = "token") -> Tensor:
    """Ratio of a token's probability under the trainer to that under the engine that sampled it, at most ``cap``.

    w = min(exp(Σ (log π_old − log π_behaviour)), cap), the sum over the token itself or over its turn or
    trajectory. Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training"
    (fengyao.notion.site/off-policy-rl); cap 2 as in verl. The product over a long trajectory explodes: keep
    to tokens or turns there.

    Worked by hand: exp(0.2) = 1.221403, exp(1) = 2.718 > 2, exp(−1) = 0.367879.

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> batch = token_batch([[-1, -1, -1]], behaviour_logp=[[-1.2, -2, 0]])
    >>> rounded(tis(batch))
    [[1.221403, 2.0, 0.367879]]
    >>> rounded(tis(batch, level="trajectory"))
    [[1.221403, 1.221403, 1.221403]]
    """
    return likelihood_ratio(batch, level).clamp(max=cap) * batch.mask_RT


def likelihood_ratio(batch: TokenBatch, level: Level) -> Tensor:
    """exp of the summed log π_old − log π_behaviour over each token's unit, 1 off the mask, (R, T)."""
    difference_RT = (batch.old_logp_RT - batch.behaviour_logp_RT).masked_fill(~batch.mask_RT, 0.0)
    if level != "token":
        unit_RT, n = units(batch, level)
        difference_RT = unit_sum(difference_RT, unit_RT, n)
    return torch.exp(bounded(difference_RT, batch.mask_RT))
