"""HICRA: tokens that plan get more of a success and less of a failure."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import on_tokens, token_signal


@component(
    "shape",
    "hicra",
    paper="2509.03646",
    needs=("token_planning",),
    bias="biased: planning tokens count more in successes than in failures",
)
def hicra(credit: Tensor | TokenCredit, batch: TurnBatch, *, alpha: float = 0.2) -> TokenCredit:
    """A, on planning tokens α·|A| more.

    A′_t = A_t + α·|A_t|·plan_t. Wang et al. 2025, eq. 4, α = 0.2, over ``dr_grpo``. ``token_planning`` is 1 inside
    thoughts and strategic phrases ("first", "let me check", …); the paper mines its phrases from a corpus.

    Worked by hand: R = 1, 0, 0, 0: A = 0.75, −0.25; planning 0.9, −0.2.

    >>> from turnwise.trainers.credit.dr_grpo import dr_grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> plans = {"token_planning": [[1, 0], [1, 0], [0], [0]]}
    >>> batch = turn_batch([[1], [0], [0], [0]], tokens=[[[1, 2]], [[1, 2]], [[1]], [[1]]], token_signals=plans)
    >>> rounded(hicra(dr_grpo(batch), batch).advantage_RT)[:2]
    [[0.9, 0.75], [-0.2, -0.25]]
    """
    planning_RT = token_signal(batch, "token_planning")
    plain_RT = on_tokens(credit, batch)
    return TokenCredit(plain_RT + alpha * plain_RT.abs() * planning_RT)
