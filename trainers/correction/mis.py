"""Masked importance sampling: tokens that engine and trainer disagree about are left out."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch
from turnwise.trainers.correction.tis import likelihood_ratio
from turnwise.trainers.kit.tokens import Level


@component("correction", "mis")
def mis(batch: TokenBatch, *, low: float = 0.5, high: float = 2.0, level: Level = "token") -> Tensor:
    """The likelihood ratio of trainer to engine where it lies in [low, high], else 0.

    w = exp(Σ (log π_old − log π_behaviour)) as in ``tis``, masked instead of truncated: a token far off is
    more likely a fault (another kernel, stale weights) than a lesson. IcePop (Ring-1T, 2510.18855).

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(mis(token_batch([[-1, -1, -1]], behaviour_logp=[[-1.2, -2, 0]])))
    [[1.221403, 0.0, 0.0]]
    """
    ratio_RT = likelihood_ratio(batch, level)
    inside_RT = (ratio_RT >= low) & (ratio_RT <= high) & batch.mask_RT
    return torch.where(inside_RT, ratio_RT, 0.0)
