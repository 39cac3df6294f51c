"""Groups that the credit rule gives nothing teach nothing."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import on_tokens


@component("filter", "informative", paper="2503.14476")
def informative(batch: TurnBatch, credit: Tensor | TokenCredit, *, tolerance: float = 1e-6) -> Tensor:
    """Weight 0 for groups all of whose advantages are 0, up to ``tolerance``; 1 for the others.

    What is dropped had no part in the policy's gradient, so this changes its cost alone (denominators count what
    was played). DAPO's dynamic sampling (Yu et al. 2025, eq. 11) compares returns instead, which is the same for rules
    that give one advantage to a whole trajectory; a rule that looks at single turns learns from groups in which all
    succeed at different times. Ours: no new tasks are drawn in place of what is dropped (a sampler does that).

    Worked by hand: equal returns, earned at other times, teach a return-to-go; equal rewards teach nothing.

    >>> from turnwise.trainers.credit.return_to_go import return_to_go
    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> batch = turn_batch([[0, 1], [1], [1], [1]], [0, 0, 1, 1])
    >>> informative(batch, return_to_go(batch)).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    if isinstance(credit, TokenCredit):
        assert batch.tokens is not None
        size_R = on_tokens(credit, batch).abs().amax(1)
        size_B = size_R.new_zeros(len(batch.group_B)).scatter_reduce(
            0, batch.tokens.trajectory_R, size_R, "amax"
        )
    else:
        size_B = (credit.abs() * batch.mask_BK).amax(1) if credit.shape[1] else credit.new_zeros(len(credit))
    groups = int(batch.group_B.max()) + 1 if len(batch.group_B) else 0
    largest_G = size_B.new_zeros(groups).scatter_reduce(0, batch.group_B, size_B, "amax")
    return (largest_G > tolerance)[batch.group_B].float()
