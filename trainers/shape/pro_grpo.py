"""ProGRPO: what was said with little confidence gains, what was said with much loses."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean, group_sum, over_turns, signal
from turnwise.trainers.kit.token_credit import changed, on_turns, sequences, token_signal


@component(
    "shape",
    "pro_grpo",
    paper="2602.05281",
    needs=("token_logp",),
    asks=("against",),
    bias="biased: a bonus for being less confident than the group, or than the prompt",
)
def pro_grpo(
    credit: Tensor | TokenCredit,
    batch: TurnBatch,
    *,
    alpha: float = 0.5,
    lowest: float = 0.2,
    against: str | None = None,
) -> Tensor | TokenCredit:
    """A plus α times how much less confident the trajectory was than its group, or than the policy is of the prompt.

    A′ = A + α·(c̄ − c_i), c_i = exp(mean log π of the least likely sampled tokens of the trajectory), a share ``lowest`` of
    them, at least one. With `against: prompt_confidence` c̄ is the same statistic over the tokens of the task's prompt, and the
    bonus is the paper's ARM (Li et al. 2026, there over GRPO); without, c̄ is the group's mean (ours), so that the mean of a group
    stays, where there it moves by how sure the task is. No bonus in groups that are given nothing (theirs: without any reward);
    α is not given in what we could read. Where A differs within a trajectory all of it gets the same bonus.

    Worked by hand: c = ½ and ¼, c̄ = ⅜, A = ±0.707106; bonus ½·(−⅛) and ½·⅛.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> logp = {"token_logp": [[-0.1, -0.6931471805599453], [-1.3862943611198906, -0.2]]}
    >>> batch = turn_batch([[1], [0]], tokens=[[[7, 8]], [[7, 8]]], token_signals=logp)
    >>> rounded(pro_grpo(grpo(batch), batch), 4)
    [[0.6446], [-0.6446]]

    Ten tokens of which the least likely two have log π −2 and −1.5: c = 0.1738, the prompt's 0.6, A = ±½.

    >>> row = [-2, -0.1, -0.1, -1.5, -0.05, -0.1, -0.2, -0.1, -0.1, -0.1]
    >>> told = {"prompt_confidence": [0.6, 0.6]}
    >>> batch = turn_batch(
    ...     [[1], [0]], tokens=[[[*range(10)]]] * 2, token_signals={"token_logp": [row, row]}, signals=told
    ... )
    >>> rounded(pro_grpo(torch.tensor([[0.5], [-0.5]]), batch, against="prompt_confidence"), 4)
    [[0.7131], [-0.2869]]

    Raises:
        RecipeError: ``lowest`` is no part of the tokens.
    """
    if not 0 < lowest <= 1:
        raise RecipeError(
            f"shape 'pro_grpo': lowest={lowest} is no part of the tokens.", "Give it above 0 and up to 1."
        )
    said, group_B = sequences(batch), batch.group_B
    logp_BM = said.pack(token_signal(batch, "token_logp"))
    ascending_BM = logp_BM.sort(-1).values  # what is no token has 0, which is last
    kept_B = (said.mask_BM.sum(-1).double() * lowest - 1e-9).ceil().clamp(min=1).long()
    kept_BM = torch.arange(said.mask_BM.shape[1], device=group_B.device) < kept_B[:, None]
    least_B = (ascending_BM * kept_BM).sum(-1) / kept_B
    confidence_B = least_B.exp()
    level_B = group_mean(confidence_B, group_B) if against is None else _of_trajectory(batch, against)
    bonus_B = alpha * (level_B - confidence_B)
    given_B = group_sum((on_turns(credit, batch).abs() > 1e-6).sum(-1), group_B) > 0
    return changed(credit, batch, torch.add, over_turns(bonus_B * given_B, batch))


def _of_trajectory(batch: TurnBatch, name: str) -> Tensor:
    """A signal of trajectories; of turns the first one's, (B,)."""
    x = signal(batch, name)
    return x[:, :1].sum(-1) if x.dim() == 2 else x
