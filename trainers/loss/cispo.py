"""The policy gradient with a clipped weight: no token's gradient is dropped."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, token_mean


@component("loss", "cispo", slope="-A", paper="2506.13585")
def cispo(batch: TokenBatch, *, low: float = 1.0, high: float = 0.28) -> TokenLoss:
    """−sg[clip(ρ, 1 − low, 1 + high)]·A·log π: where PPO's clip stops a token, this only limits its weight.

    ρ = π/π_old. MiniMax-M1 2025, eq. 4 and 5; ``low`` 1 is no lower limit, as there. A token far above the limit keeps the
    slope (1 + high)·A.

    Metrics: ``clipped`` (share of tokens whose weight is limited), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with ρ = 1.5, A = ±1 and log π = −0.5: ∓1.28·(−0.5).

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> old = -0.5 - log(1.5)
    >>> rounded(cispo(token_batch([[-0.5, -0.5]], [[1, -1]], old_logp=[[old, old]])).loss_RT)
    [[0.64, -0.64]]
    """
    log_ratio_RT, mask_RT = log_ratio(batch), batch.mask_RT
    ratio_RT = log_ratio_RT.exp().detach()
    weight_RT = ratio_RT.clamp(1 - low, 1 + high)
    metrics = {
        "clipped": token_mean(weight_RT != ratio_RT, mask_RT),
        "kl_old": k3_of_old(log_ratio_RT, mask_RT),
    }
    return TokenLoss(-weight_RT * batch.advantage_RT * batch.logp_RT * mask_RT, metrics)
