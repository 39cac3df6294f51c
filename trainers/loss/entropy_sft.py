"""Imitation of the tokens about which the policy is wrong and sure."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import token_mean, whole_share


@component(
    "loss",
    "entropy_sft",
    objective="the likelihood of demonstrations, at the tokens that surprise and were not in doubt",
    paper="2508.03178",
    whole=True,
    slope="own",
)
def entropy_sft(batch: WholeBatch, *, share: float = 0.2, entropy: float = 1.0) -> WholeLoss:
    """−A·log π of the ``share`` of tokens (at least one) with the largest −log π − c·H, c = ``entropy``; the others have no loss.

    Entropy-SFT of Light-IF (2025), §3.2. By the reducer's weights, whose denominator counts all tokens. For a warm start
    by a source of demonstrations (A = 1 there).

    Metrics: ``nll`` (mean of −log π over all tokens, in nats), ``nll_kept`` (over those that are learned).

    Worked by hand with −log π = 0.1, 2, 0.9, 0.4 and H = 0.05, 1, 1.2, 0.3: 0.05, 1, −0.3, 0.1: the second of four is kept.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[-0.1, -2, -0.9, -0.4]], [[1] * 4], entropy=[[0.05, 1, 1.2, 0.3]])
    >>> entropy_sft(batch, share=0.25).loss.item()
    0.5
    """
    mask_RT, logp_RT = batch.mask_RT, batch.logp_RT.detach()
    trouble_N = (-logp_RT - entropy * batch.entropy_RT.detach())[mask_RT]
    kept_RT = torch.zeros_like(mask_RT)
    if len(trouble_N):
        count = max(1, whole_share(share, len(trouble_N)))
        kept_RT[mask_RT] = trouble_N >= trouble_N.topk(count).values[-1]
    loss_RT = -batch.advantage_RT * batch.logp_RT * kept_RT
    metrics = {"nll": -token_mean(logp_RT, mask_RT), "nll_kept": -token_mean(logp_RT, kept_RT)}
    return WholeLoss((batch.weight_RT * loss_RT).sum(), metrics)
