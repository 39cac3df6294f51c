"""PPO's clip, with a few of the tokens that lower entropy most taken out."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, surrogate, token_mean, whole_share


@component(
    "loss",
    "clip_cov",
    objective="the credit rule's, by PPO's surrogate without some tokens that would lower entropy most",
    paper="2505.22617",
    whole=True,
    slope="own",
)
def clip_cov(
    batch: WholeBatch,
    *,
    share: float = 2e-4,
    least: float = 1.0,
    most: float = 5.0,
    low: float = 0.2,
    high: float = 0.2,
) -> WholeLoss:
    """The clipped surrogate without ``share`` of the tokens (at least one) among those of high covariance of A and log π.

    cov_t = (A_t − Ā)·(log π_t − mean log π) over the sampled tokens of the minibatch, without gradient. Of tokens with
    least < cov < most that the clip does not hold, ⌊share·N⌋ or one are chosen by lot and have neither loss nor slope.
    Clip-Cov (Cui et al. 2025), eq. 13. The lot is drawn from the digits of each token's old log-probability (ours), so that
    the order of rows says nothing.

    Metrics: ``cov_held`` (share of tokens taken out), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand: cov = 1.2, −0.7, −1.2, 1.7; the first and the fourth are eligible, of which one goes: the four losses
    −1, −1, 1, 1 sum to 1 or −1.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> found = clip_cov(whole_batch([[-0.1, -2, -0.1, -3]], [[1, 1, -1, -1]]))
    >>> abs(round(4 * found.loss.item(), 6)), found.metrics["cov_held"].item()
    (1.0, 0.25)
    """
    log_ratio_RT, mask_RT, advantage_RT = log_ratio(batch), batch.mask_RT, batch.advantage_RT
    ratio_RT = log_ratio_RT.exp()
    loss_RT = surrogate(ratio_RT, advantage_RT, 1 - low, 1 + high)
    logp_N, advantage_N = batch.logp_RT.detach()[mask_RT], advantage_RT[mask_RT]
    cov_N = (advantage_N - advantage_N.mean()) * (logp_N - logp_N.mean())
    free_N = ~(loss_RT > -ratio_RT * advantage_RT)[mask_RT]
    eligible_N = (cov_N > least) & (cov_N < most) & free_N
    lot_N = torch.where(eligible_N, _lots(batch.old_logp_RT[mask_RT]), 2.0)
    count = min(int(eligible_N.sum()), max(1, whole_share(share, len(cov_N))))
    out_RT = torch.zeros_like(mask_RT)
    if count:
        out_RT[mask_RT] = lot_N <= lot_N.topk(count, largest=False).values[-1]
    metrics = {"cov_held": token_mean(out_RT, mask_RT), "kl_old": k3_of_old(log_ratio_RT, mask_RT)}
    return WholeLoss((batch.weight_RT * loss_RT * (mask_RT & ~out_RT)).sum(), metrics)


def _lots(x_N: torch.Tensor) -> torch.Tensor:
    """Numbers in [0, 1) that look drawn by lot, the same for the same x."""
    return torch.frac((x_N.abs() + 1) * 1e4 * 0.6180339887498949)
