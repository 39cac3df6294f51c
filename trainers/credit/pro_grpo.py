"""ProGRPO: what was said with little confidence gains, what was said with much loses."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, group_z, over_turns, signal


@component(
    "credit",
    "pro_grpo",
    paper="2602.05281",
    needs=("logp", "tokens"),
    bias="biased: GRPO's standardisation, plus a bonus for being less confident than the group",
)
def pro_grpo(batch: TurnBatch, *, alpha: float = 0.5, lowest: float = 0.2) -> Tensor:
    """GRPO's advantage plus α times how much less confident the trajectory was than its group.

    A_i = z_i + α·(c̄ − c_i), c_i = exp(mean log-probability per token of the least likely turns), a share
    ``lowest`` of them, at least one; c̄ the group's mean. Li et al. 2026. Ours: turns in place of tokens, c̄ in
    place of the prompt's own confidence, no bonus in groups without any spread of returns (theirs: without
    any reward); α is not given in what we could read.

    Worked by hand: c = ½ and ¼, c̄ = ⅜, z = ±0.707106; bonus ½·(−⅛) and ½·⅛.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> said = {"logp": [[-0.6931471805599453], [-1.3862943611198906]], "tokens": [[1], [1]]}
    >>> rounded(pro_grpo(turn_batch([[1], [0]], signals=said)), 4)
    [[0.6446], [-0.6446]]
    """
    mask_BK, group_B = batch.mask_BK, batch.group_B
    per_token_BK = signal(batch, "logp") / signal(batch, "tokens").clamp(min=1)
    ascending_BK = per_token_BK.masked_fill(~mask_BK, torch.inf).sort(-1).values
    kept_B = (batch.length_B * lowest).ceil().clamp(min=1)
    kept_BK = torch.arange(mask_BK.shape[1], device=mask_BK.device) < kept_B[:, None]
    least_B = ascending_BK.where(kept_BK & ascending_BK.isfinite(), 0.0).sum(-1) / kept_B
    confidence_B = least_B.exp()
    z_B = group_z(batch.return_B, group_B)
    bonus_B = alpha * (group_mean(confidence_B, group_B) - confidence_B)
    spread_B = group_mean((batch.return_B - group_mean(batch.return_B, group_B)).abs(), group_B) > 1e-6
    return over_turns(z_B + bonus_B * spread_B, batch)
