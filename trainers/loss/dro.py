"""The policy gradient with a quadratic penalty on the distance from the old policy."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio


@component("loss", "dro", slope="-A", paper="2405.19107")
def dro(batch: TokenBatch, *, beta: float = 0.5) -> TokenLoss:
    """−(A·log π − ½·β·(log π − log π_old)²) of each token: no ratio, no clip.

    Direct Reward Optimisation (Richemond et al. 2024), with the advantage for reward less value and per token (the form
    that trainers of language models have). On fresh samples the slope is −A, and ½d² is the k2 estimate of the distance.

    Metric: ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with A = 1, log π = −1, log π_old = −1.2: 1 + 0.25·0.04 = 1.01.

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(dro(token_batch([[-1]], [[1]], old_logp=[[-1.2]])).loss_RT)
    [[1.01]]
    """
    log_ratio_RT = log_ratio(batch)
    loss_RT = -(batch.advantage_RT * batch.logp_RT - 0.5 * beta * log_ratio_RT**2)
    return TokenLoss(loss_RT * batch.mask_RT, {"kl_old": k3_of_old(log_ratio_RT, batch.mask_RT)})
