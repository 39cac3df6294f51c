"""Imitation of what was done, weighted by how good it was: no ratio, so that stored episodes do."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "awr",
    objective="E[R] − λ·KL(π ‖ who acted), by regression with the weights exp(A/λ)",
    slope="own",
    paper="1910.00177",
)
def awr(batch: TokenBatch, *, temperature: float = 1.0, cap: float = 20.0) -> TokenLoss:
    """−min(exp(A/λ), cap)·log π, λ = ``temperature``.

    Advantage-weighted regression (Peng et al. 2019), eq. 10: the policy nearest to KL-regularised improvement over whoever
    played. Advantages of 0 are imitated with weight 1. Small λ trusts advantages more. A correction and a
    filter's weight do not enter the exponent: they multiply the loss (``weighs_apart`` in learn/objective.py), so that a token of
    weight 0 is not imitated.

    Metrics: ``imitation`` (mean weight), ``nll`` (mean of −log π, in nats).

    Worked by hand with A = 1, 0, −1, 4: weights 2.718282, 1, 0.367879, 20.

    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(awr(token_batch([[-1] * 4], [[1, 0, -1, 4]])).loss_RT)
    [[2.718282, 1.0, 0.367879, 20.0]]
    """
    weight_RT = (batch.advantage_RT / temperature).exp().clamp(max=cap) * batch.mask_RT
    metrics = {
        "imitation": token_mean(weight_RT, batch.mask_RT),
        "nll": -token_mean(batch.logp_RT, batch.mask_RT),
    }
    return TokenLoss(-weight_RT * batch.logp_RT, metrics)
