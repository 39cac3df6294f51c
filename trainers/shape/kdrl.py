"""KDRL: distillation as a reward of tokens, where the outcome asks for it."""

from typing import Literal

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_sum
from turnwise.trainers.kit.token_credit import on_tokens, token_signal, tokens_of


@component(
    "shape",
    "kdrl",
    paper="2506.02208",
    needs=("token_teacher_logp", "token_logp"),
    bias="biased: adds how much likelier a teacher finds the token, which is not what the task pays",
)
def kdrl(
    credit: Tensor | TokenCredit,
    batch: TurnBatch,
    *,
    beta: float = 0.2,
    where: Literal["all", "failed", "failed_groups"] = "all",
    success: float = 1.0,
) -> TokenCredit:
    """A + β·(log q − log π) of each sampled token, q the teacher: of all, of failures alone, or of groups that all failed.

    KDRL (Xu et al. 2025): on fresh samples this is the slope of the loss `kdrl` (½x², the reverse KL) beside reinforcement,
    and ``where`` are its masks by reward: the rollout's (``failed``) and the group's (``failed_groups``). Let β fall by
    `schedule: {shape.kdrl.beta: …}`. Both log-probabilities are those before the update.

    Worked by hand with log q = −.2, −1, −3 and log π = −.5, −.8, −1: .3, −.2, −2, and β = .2; the failure alone is masked in.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> said = {"token_teacher_logp": [[-0.2, -1, -3]] * 2, "token_logp": [[-0.5, -0.8, -1]] * 2}
    >>> batch, A = turn_batch([[1], [0]], tokens=[[[7, 8, 9]]] * 2, token_signals=said), torch.tensor([[0.5], [-1.0]])
    >>> rounded(kdrl(A, batch).advantage_RT, 4)
    [[0.56, 0.46, 0.1], [-0.94, -1.04, -1.4]]
    >>> rounded(kdrl(A, batch, where="failed").advantage_RT, 4)
    [[0.5, 0.5, 0.5], [-0.94, -1.04, -1.4]]
    """
    view = tokens_of(batch)
    solved_B = batch.return_B >= success - 1e-6
    if where == "all":
        asked_B = torch.ones_like(solved_B)
    elif where == "failed":
        asked_B = ~solved_B
    else:
        asked_B = group_sum(solved_B.long(), batch.group_B) == 0
    gap_RT = (token_signal(batch, "token_teacher_logp") - token_signal(batch, "token_logp")) * view.mask_RT
    gap_RT = gap_RT * asked_B[view.trajectory_R][:, None]
    return TokenCredit(on_tokens(credit, batch) + beta * gap_RT)
