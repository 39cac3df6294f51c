"""Cross-entropy on tokens, weighted by their advantages: imitation where these are 1."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component("loss", "nll", objective="the likelihood of what was chosen, weighed by its advantage", slope="-A")
def nll(batch: TokenBatch) -> TokenLoss:
    """−A·log π of each token: behaviour cloning of demonstrations, whose advantage is 1; REINFORCE on what was played.

    Metric: ``nll``, the mean of −log π, in nats.

    Worked by hand with π = e⁻¹, e⁻² and A = 1, 0.5:

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(nll(token_batch([[-1, -2]], [[1, 0.5]])).loss_RT)
    [[1.0, 1.0]]
    """
    loss_RT = -batch.advantage_RT * batch.logp_RT * batch.mask_RT
    return TokenLoss(loss_RT, {"nll": -token_mean(batch.logp_RT, batch.mask_RT)})
