"""XRPO: unexpected successes are sharpened."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean, over_turns, signal
from turnwise.trainers.kit.token_credit import changed


@component(
    "shape",
    "xrpo",
    paper="2510.06672",
    needs=("logp", "tokens"),
    bias="biased: a bonus for successes that were unlikely",
)
def xrpo(
    credit: Tensor | TokenCredit,
    batch: TurnBatch,
    *,
    weight: float = 2.5,
    cap: float = 0.5,
    success: float = 1.0,
) -> Tensor | TokenCredit:
    """A, raised for successes that are less likely than the rest of the group.

    s = mean log-probability per token, η_i = exp(s_i − mean_g s); where R_i ≥ ``success``
    A′ = A + min(max(λ·(1 − η_i), 0), κ·A), κA counted as 0 if negative. Bamba et al. 2025, the
    "advantage sharpening" of GRPO; λ = 2.5, κ = 0.5. Formula from third-party code.

    Worked by hand: s = −0.2, −0.6, −0.4, −0.4: η = 1.2214, 0.8187, 1, 1; A = ±0.866025, and the second's bonus
    min(2.5·0.1813, 0.433) = 0.433.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"logp": [[-0.2], [-0.6], [-0.4], [-0.4]], "tokens": [[1], [1], [1], [1]]}
    >>> batch = turn_batch([[1], [1], [0], [0]], signals=signals)
    >>> rounded(xrpo(grpo(batch), batch))
    [[0.866024], [1.299036], [-0.866024], [-0.866024]]
    """
    mask_BK, group_B = batch.mask_BK, batch.group_B
    tokens_B = (signal(batch, "tokens") * mask_BK).sum(-1)
    likely_B = (signal(batch, "logp") * mask_BK).sum(-1) / tokens_B.clamp(min=1)
    novelty_B = 1 - (likely_B - group_mean(likely_B, group_B)).exp()
    most_B = (weight * novelty_B).clamp(min=0) * (batch.return_B >= success - 1e-6)
    return changed(
        credit,
        batch,
        lambda A, most: A + torch.minimum(most, (cap * A).clamp(min=0)),
        over_turns(most_B, batch),
    )
