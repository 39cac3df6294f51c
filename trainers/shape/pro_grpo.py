"""ProGRPO: what was said with little confidence gains, what was said with much loses."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean, group_sum, over_turns, signal
from turnwise.trainers.kit.token_credit import changed, on_turns


@component(
    "shape",
    "pro_grpo",
    paper="2602.05281",
    needs=("logp", "tokens"),
    bias="biased: a bonus for being less confident than the group",
)
def pro_grpo(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, alpha: float = 0.5, lowest: float = 0.2
) -> Tensor | TokenCredit:
    """A plus α times how much less confident the trajectory was than its group.

    A′ = A + α·(c̄ − c_i), c_i = exp(mean log-probability per token of the least likely turns), a share
    ``lowest`` of them, at least one; c̄ the group's mean. Li et al. 2026, there over GRPO. Ours: turns in place of
    tokens, c̄ in place of the prompt's own confidence, no bonus in groups that are given nothing (theirs: without
    any reward); α is not given in what we could read. Where A differs within a trajectory all of it gets the same bonus.

    Worked by hand: c = ½ and ¼, c̄ = ⅜, A = ±0.707106; bonus ½·(−⅛) and ½·⅛.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> said = {"logp": [[-0.6931471805599453], [-1.3862943611198906]], "tokens": [[1], [1]]}
    >>> batch = turn_batch([[1], [0]], signals=said)
    >>> rounded(pro_grpo(grpo(batch), batch), 4)
    [[0.6446], [-0.6446]]
    """
    mask_BK, group_B = batch.mask_BK, batch.group_B
    per_token_BK = signal(batch, "logp") / signal(batch, "tokens").clamp(min=1)
    ascending_BK = per_token_BK.masked_fill(~mask_BK, torch.inf).sort(-1).values
    kept_B = (batch.length_B * lowest).ceil().clamp(min=1)
    kept_BK = torch.arange(mask_BK.shape[1], device=mask_BK.device) < kept_B[:, None]
    least_B = ascending_BK.where(kept_BK & ascending_BK.isfinite(), 0.0).sum(-1) / kept_B
    confidence_B = least_B.exp()
    bonus_B = alpha * (group_mean(confidence_B, group_B) - confidence_B)
    given_B = group_sum((on_turns(credit, batch).abs() > 1e-6).sum(-1), group_B) > 0
    return changed(credit, batch, torch.add, over_turns(bonus_B * given_B, batch))
