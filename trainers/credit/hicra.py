"""HICRA: tokens that plan get more of a success and less of a failure."""

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean
from turnwise.trainers.kit.token_credit import over_tokens, token_signal


@component(
    "credit",
    "hicra",
    paper="2509.03646",
    needs=("token_planning",),
    bias="biased: planning tokens count more in successes than in failures",
)
def hicra(batch: TurnBatch, *, alpha: float = 0.2) -> TokenCredit:
    """Return minus group mean, on planning tokens α·|A| more.

    A'_t = A_i + α·|A_i|·plan_t, A_i = R_i − mean_g R. Wang et al. 2025, eq. 4, α = 0.2. ``token_planning`` is 1 inside
    thoughts and strategic phrases ("first", "let me check", …); the paper mines its phrases from a corpus.

    Worked by hand: R = 1, 0, 0, 0: A = 0.75, −0.25; planning 0.9, −0.2.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> plans = {"token_planning": [[1, 0], [1, 0], [0], [0]]}
    >>> batch = turn_batch([[1], [0], [0], [0]], tokens=[[[1, 2]], [[1, 2]], [[1]], [[1]]], token_signals=plans)
    >>> rounded(hicra(batch).advantage_RT)[:2]
    [[0.9, 0.75], [-0.2, -0.25]]
    """
    advantage_B = batch.return_B - group_mean(batch.return_B, batch.group_B)
    advantage_BK = advantage_B[:, None] * batch.mask_BK
    planning_RT = token_signal(batch, "token_planning")
    plain_RT = over_tokens(advantage_BK, batch)
    return TokenCredit(plain_RT + alpha * plain_RT.abs() * planning_RT)
