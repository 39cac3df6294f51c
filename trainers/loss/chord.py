"""Imitation that leaves alone what the policy knows already, and what it finds absurd."""

from typing import Literal

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "chord",
    objective="the likelihood of demonstrations, most where the policy hesitates",
    slope="-c·A",
    paper="2508.11408",
)
def chord(batch: TokenBatch, *, form: Literal["phi", "is"] = "phi") -> TokenLoss:
    """−A·sg[p·(1 − p)]·log π, with p = π(token): most of the weight is where the policy hesitates.

    CHORD-φ (Zhang et al. 2025), eq. 8, or with ``form: is`` its variant by importance, of the weight p, for the tokens of a source of demonstrations (A = 1 there) beside the policy loss on
    what was played: (1 − μ)·policy loss + μ·imitation. μ is the source's ``weight``, on a schedule that falls, and 1 − μ the
    policy loss's own ``weight``, which this loss does not set; a schedule of the same shape that rises keeps their sum at 1:
    ``loss: [{name: clip, weight: 0.1}]`` beside a source of weight 0.9, ``schedule: {source.demonstrations.weight: {name: cosine,
    to: 0.05}, loss.clip.weight: {name: cosine, to: 0.95}}``. With φ the paper has a constant μ of 0.1.

    Metrics: ``imitation`` (mean weight), ``nll`` (mean of −log π, in nats).

    Worked by hand with p = ½, 0.9: weights 0.25 and 0.09.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> rounded(chord(token_batch([[log(0.5), log(0.9)]], [[1, 1]])).loss_RT)
    [[0.173287, 0.009482]]
    >>> rounded(chord(token_batch([[log(0.5), log(0.9)]], [[1, 1]]), form="is").loss_RT)
    [[0.346574, 0.094824]]
    """
    p_RT = batch.logp_RT.detach().exp()
    weight_RT = (p_RT * (1 - p_RT) if form == "phi" else p_RT) * batch.mask_RT
    metrics = {
        "imitation": token_mean(weight_RT, batch.mask_RT),
        "nll": -token_mean(batch.logp_RT, batch.mask_RT),
    }
    return TokenLoss(-batch.advantage_RT * weight_RT * batch.logp_RT, metrics)
