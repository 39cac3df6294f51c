"""Imitation as reinforcement: at each place the policy tries one token and is paid if it is the right one."""

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "one_token",
    objective="the expected reward of one token, which is paid for being the demonstrated one",
    slope="-c·A",
    paper="2509.26313",
)
def one_token(batch: TokenBatch, *, miss: float = -0.1) -> TokenLoss:
    """−A·(1 − miss)·sg[π]·log π: the mean, over what the policy would try, of the policy gradient of one token.

    One-Token Rollout (Ming et al. 2025): tokens are tried by the policy, 1 is paid for the demonstrated one and ``miss``
    for any other. Ours is the expectation over the tries: Σ_v π(v)·r(v)·∇log π(v) = (1 − miss)·π·∇log π of the demonstrated
    token, without their noise. With ``miss`` 0 it is dynamic fine-tuning (Wu et al. 2025, 2508.05629). For a source of
    demonstrations (A = 1 there). A token that the policy would never try is not learned: imitate by `nll` first.

    Metrics: ``hit`` (mean chance of the demonstrated token), ``nll`` (mean of −log π, in nats).

    Worked by hand with π = 0.6: 0.6·1.1·0.510826 = 0.337145, and with miss = 0 0.306495.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> batch = token_batch([[log(0.6)]], [[1]])
    >>> rounded(one_token(batch).loss_RT), rounded(one_token(batch, miss=0.0).loss_RT)
    ([[0.337145]], [[0.306495]])
    """
    hit_RT = batch.logp_RT.detach().exp() * batch.mask_RT
    metrics = {"hit": token_mean(hit_RT, batch.mask_RT), "nll": -token_mean(batch.logp_RT, batch.mask_RT)}
    loss_RT = -batch.advantage_RT * (1 - miss) * hit_RT * batch.logp_RT
    return TokenLoss(loss_RT * batch.mask_RT, metrics)
