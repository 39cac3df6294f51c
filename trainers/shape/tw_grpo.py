"""TW-GRPO: tokens count for more where the group would go on differently."""

from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import on_tokens, token_signal


@component(
    "shape",
    "tw_grpo",
    paper="2505.24718",
    needs=("token_disagreement",),
    bias="biased: weighted by a statistic of the group that the trajectory is in",
)
def tw_grpo(credit: Tensor | TokenCredit, batch: TurnBatch, *, alpha: float = 1.7) -> TokenCredit:
    """A times 1 + (α − 1)·d of the token, d from 0 where the group's distributions agree most to 1 where they agree least.

    TW-GRPO (Dang et al. 2025), there over GRPO; its weights on the loss are weights on A in every loss that is proportional to
    A. The signal `disagreement` says how d is made, the same for all members of a group at the same place. Left out: its reward
    for sets of answers.

    Worked by hand with α = 1.7 and D = 1.0237 and 0.0085, so d = 1 and 0: weights 1.7 and 1.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0]], tokens=[[[7, 8]]], token_signals={"token_disagreement": [[1.0, 0.0]]})
    >>> rounded(tw_grpo(batch.reward_BK + 1, batch).advantage_RT)
    [[1.7, 1.0]]

    Raises:
        RecipeError: alpha is below 1, so that differences would count for less.
    """
    if alpha < 1:
        raise RecipeError(f"shape 'tw_grpo': alpha={alpha} is below 1.", "Give 1 or more, such as 1.7.")
    part_RT = token_signal(batch, "token_disagreement")
    return TokenCredit(on_tokens(credit, batch) * (1 + (alpha - 1) * part_RT))
