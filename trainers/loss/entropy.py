"""A bonus for entropy, against premature certainty."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component("loss", "entropy", objective="the policy's entropy", slope="own", paper="1602.01783")
def entropy(batch: TokenBatch) -> TokenLoss:
    """Minus the entropy of the policy at each sampled token, in nats: descending it explores.

    l = −H(π(·|s)), exact over the vocabulary. Mnih et al. 2016 (A3C), §4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(entropy(token_batch([[-1.0, -2.0]], entropy=[[0.5, 0.25]])).loss_RT)
    [[-0.5, -0.25]]
    """
    loss_RT = -batch.entropy_RT * batch.mask_RT
    return TokenLoss(loss_RT, {"entropy": token_mean(batch.entropy_RT, batch.mask_RT)})
