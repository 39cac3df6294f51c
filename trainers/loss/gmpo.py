"""The geometric mean of token ratios that were clipped one by one."""

from typing import Literal

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, token_mean, unit_mean, units


@component("loss", "gmpo", paper="2507.20673", whole=True, slope="-A")
def gmpo(
    batch: WholeBatch, *, clip: float = 0.4, level: Literal["turn", "trajectory"] = "trajectory"
) -> WholeLoss:
    """The clip is on tokens, as in PPO, and the ratio is their geometric mean, which outliers move little.

    d = log π − log π_old;  d′ = sgn(A)·min(sgn(A)·d, sgn(A)·clip(d, −clip, clip));  ρ = exp(mean over the trajectory of d′);
    L = −Σ_t w_t·A_t·ρ_t, where ρ_t is ρ with the slope ρ in its own d′_t. Zhao et al. 2025, eq. 4; a token with A = 0 counts as one that has not moved. With one advantage per
    trajectory and `reduce: sequence_mean` it is the paper's, with its gradient; advantages that differ by turn, and
    ``level: turn``, are ours.

    Metrics: ``clipped`` (share of tokens held back), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with d = 0.5, −0.1, 0.3 and A = 1: the mean of 0.4, −0.1 and 0.3 is 0.2, and ρ = 1.221403.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> round(gmpo(whole_batch([[0.5, -0.1, 0.3]], [[1, 1, 1]], old_logp=[[0, 0, 0]])).loss.item(), 6)
    -1.221403
    """
    log_ratio_RT, sign_RT = log_ratio(batch), batch.advantage_RT.sign()
    rise_RT, bound_RT = sign_RT * log_ratio_RT, sign_RT * log_ratio_RT.clamp(-clip, clip)
    held_RT = bound_RT < rise_RT
    kept_RT = sign_RT * torch.where(held_RT, bound_RT, rise_RT)
    mean_RT = unit_mean(kept_RT, *units(batch, level)).detach()
    ratio_RT = (mean_RT + kept_RT - kept_RT.detach()).exp()
    metrics = {
        "clipped": token_mean(held_RT, batch.mask_RT),
        "kl_old": k3_of_old(log_ratio_RT, batch.mask_RT),
    }
    return WholeLoss(-(batch.weight_RT * batch.advantage_RT * ratio_RT * batch.mask_RT).sum(), metrics)
