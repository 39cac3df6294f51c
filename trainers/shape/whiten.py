"""Advantages of mean 0 and deviation 1 over the batch."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit import groups
from turnwise.trainers.kit.token_credit import tokens_of


@component(
    "shape",
    "whiten",
    paper="1707.06347",
    bias="biased: the mean and the deviation over the batch depend on what was sampled",
)
def whiten(credit: Tensor | TokenCredit, batch: TurnBatch, *, centre: bool = True) -> Tensor | TokenCredit:
    """(A − mean)/deviation over all turns that were played, or over all tokens where the rule is about tokens.

    As PPO's implementations do (Schulman et al. 2017 do not mention it). Without ``centre`` it only divides, so that
    no advantage changes its sign.

    Worked by hand: A = 1, 3 have mean 2 and deviation √2 (with n − 1).

    >>> import torch
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(whiten(torch.tensor([[1.0, 3.0]]), turn_batch([[0, 0]])))
    [[-0.707107, 0.707107]]
    >>> rounded(whiten(torch.tensor([[1.0, 3.0]]), turn_batch([[0, 0]]), centre=False))
    [[0.707107, 2.12132]]
    """
    turns = isinstance(credit, Tensor)
    A, mask = (credit, batch.mask_BK) if turns else (credit.advantage_RT, tokens_of(batch).mask_RT)
    if centre:
        found = groups.whiten(A, mask) * mask
    else:
        inside = A[mask]
        found = A * mask / inside.std().clamp(min=1e-8) if len(inside) > 1 else A * mask
    return found if turns else TokenCredit(found)
