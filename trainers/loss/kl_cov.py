"""The policy gradient with a penalty on the tokens whose covariance lowers entropy most."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, token_mean, whole_share


@component("loss", "kl_cov", paper="2505.22617", whole=True, slope="-A")
def kl_cov(batch: WholeBatch, *, share: float = 0.002, coefficient: float = 1.0) -> WholeLoss:
    """−ρA without clipping; the few tokens with the largest covariance of A and log π are held near the old policy.

    cov_t = (A_t − Ā)·(log π_t − mean log π) over the sampled tokens of the minibatch, without gradient; ρ = exp(log π −
    log π_old). l = −ρA, and for the ``share`` of tokens (at least one) with the largest cov
    l = −ρA + coefficient·|log π − log π_old|; L = Σ_t w_t·l_t. KL-Cov of Cui et al. 2025. Tokens that tie with the last
    of them are held too, so that the order of rows says nothing. The paper has share 0.002 for a model of 7 billion
    weights and 0.0002 for 32 billion.

    Metrics: ``cov_held`` (share of tokens held), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand: cov = 1.2, −0.7, −1.2, 1.7, so that the fourth token is held; it has ρ = e^0.1 and A = −1, its loss is
    1.105171 + 0.1; with the others' −1, −1 and 1 the mean is 0.205171 / 4.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[-0.1, -2, -0.1, -3]], [[1, 1, -1, -1]], old_logp=[[-0.1, -2, -0.1, -3.1]])
    >>> round(kl_cov(batch).loss.item(), 6)
    0.051293
    """
    mask_RT, log_ratio_RT = batch.mask_RT, log_ratio(batch)
    logp_N, advantage_N = batch.logp_RT.detach()[mask_RT], batch.advantage_RT[mask_RT]
    cov_N = (advantage_N - advantage_N.mean()) * (logp_N - logp_N.mean())
    count = min(len(cov_N), max(1, whole_share(share, len(cov_N))))
    held_RT = torch.zeros_like(mask_RT)
    if count:
        held_RT[mask_RT] = cov_N >= cov_N.topk(count).values[-1]
    ratio_RT = log_ratio_RT.exp()
    loss_RT = -ratio_RT * batch.advantage_RT + coefficient * log_ratio_RT.abs() * held_RT
    metrics = {
        "cov_held": token_mean(held_RT, mask_RT),
        "kl_old": k3_of_old(log_ratio_RT, mask_RT),
    }
    return WholeLoss((batch.weight_RT * loss_RT * mask_RT).sum(), metrics)
