"""A soft gate in place of the clip."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import chosen, k3_of_old, log_ratio, token_mean


@component("loss", "sapo", slope="-A", paper="2511.20347")
def sapo(batch: TokenBatch, *, positive: float = 1.0, negative: float = 1.05) -> TokenLoss:
    """−A·(4/τ)·σ(τ·(ρ − 1)): the slope falls smoothly, 4σ(1 − σ), as the ratio leaves 1 on either side.

    ρ = π/π_old; τ is ``positive`` where A > 0 and ``negative`` elsewhere, which is larger so that punished tokens, whose
    gradient raises all others, are let go sooner. Gao et al. 2025, eq. 5. At ρ = 1 the slope is that of the policy
    gradient.

    Metrics: ``gate`` (mean of 4σ(1 − σ), 1 on fresh samples), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with ρ = 1.2 and A = 1, −1: 4·σ(0.2) = 2.199336 and (4/1.05)·σ(0.21) = 2.104030.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(sapo(token_batch([[log(1.2), log(1.2)]], [[1, -1]], old_logp=[[0, 0]])).loss_RT)
    [[-2.199336, 2.10403]]
    """
    log_ratio_RT, mask_RT = log_ratio(batch), batch.mask_RT
    tau_RT = chosen(batch.advantage_RT > 0, positive, negative, batch.logp_RT)
    gate_RT = torch.sigmoid(tau_RT * (log_ratio_RT.exp() - 1))
    metrics = {
        "gate": token_mean(4 * gate_RT * (1 - gate_RT), mask_RT),
        "kl_old": k3_of_old(log_ratio_RT, mask_RT),
    }
    return TokenLoss(-batch.advantage_RT * 4 / tau_RT * gate_RT * mask_RT, metrics)
