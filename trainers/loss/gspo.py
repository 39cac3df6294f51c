"""PPO's clip on the ratio of whole trajectories, or of whole turns."""

from typing import Literal

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, surrogate, token_mean, unit_mean, units


@component("loss", "gspo", paper="2507.18071", whole=True, slope="-A")
def gspo(
    batch: WholeBatch,
    *,
    low: float = 3e-4,
    high: float = 4e-4,
    level: Literal["turn", "trajectory"] = "trajectory",
) -> WholeLoss:
    """The clipped surrogate with the geometric mean of the ratios of a trajectory's tokens in place of each token's own.

    s = exp(mean over the trajectory of log π − log π_old);  s_t = sg[s]·π_t/sg[π_t], which is s, and has the slope s in
    its own log π_t;  L = Σ_t w_t·max(−s_t·A_t, −clip(s_t, 1 − low, 1 + high)·A_t). Zheng et al. 2025, eq. 5 and 14 (the
    token form). Where all tokens of a trajectory have one advantage and `reduce: sequence_mean`, it is eq. 5 with its
    gradient. ``level: turn`` takes the mean over each turn: Rank-GRPO's ratio per item (2510.20150), where a turn is an
    item. A correction for the gap between engine and trainer must be of the same level: one of single tokens would weigh
    apart what this counts alike, and is refused.

    Metrics: ``clipped`` (share of tokens held back; whole trajectories are), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with log ratios 4e-4, 2e-4 and A = 1; 2e-3, 0, 1e-3, 1e-3 and A = −1: s = 1.000300 and 1.001001; the
    mean of −1.000300 and 1.001001 is 0.000350.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> ratios = [[4e-4, 2e-4], [2e-3, 0, 1e-3, 1e-3]]
    >>> batch = whole_batch(ratios, [[1, 1], [-1] * 4], old_logp=[[0, 0], [0] * 4])
    >>> batch.weight_RT[:] = batch.mask_RT / batch.mask_RT.sum(1, keepdim=True) / 2
    >>> round(gspo(batch).loss.item(), 6)
    0.00035
    """
    loss_RT, metrics = sequence_surrogate(batch, low, high, level)
    return WholeLoss((batch.weight_RT * loss_RT).sum(), metrics)


def sequence_surrogate(
    batch: WholeBatch, low: float, high: float, level: Literal["turn", "trajectory"]
) -> tuple[Tensor, dict[str, Tensor]]:
    """The surrogate of each token by the ratio of its trajectory or turn, (R, T), and its metrics."""
    log_ratio_RT, mask_RT = log_ratio(batch), batch.mask_RT
    mean_RT = unit_mean(log_ratio_RT, *units(batch, level)).detach()
    ratio_RT = (mean_RT + log_ratio_RT - log_ratio_RT.detach()).exp()
    loss_RT = surrogate(ratio_RT, batch.advantage_RT, 1 - low, 1 + high)
    held_RT = loss_RT > -ratio_RT * batch.advantage_RT
    metrics = {"clipped": token_mean(held_RT, mask_RT), "kl_old": k3_of_old(log_ratio_RT, mask_RT)}
    return torch.where(mask_RT, loss_RT, 0.0), metrics
