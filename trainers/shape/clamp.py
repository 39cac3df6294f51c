"""No advantage is larger than a limit."""

from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import changed


@component("shape", "clamp", bias="biased: what is far from 0 counts less than it should")
def clamp(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, limit: float = 1.0, asymmetric: float | None = None
) -> Tensor | TokenCredit:
    """min(max(A, −asymmetric), limit); −limit without ``asymmetric``.

    Common practice after a division by a small deviation (ROLL has ±2 beside a deviation of the batch); a lower limit of its own keeps rare failures
    from unlearning everything.

    Worked by hand with limits of 1 and −0.5:

    >>> import torch
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(clamp(torch.tensor([[3.0, -3.0]]), turn_batch([[0, 0]])))
    [[1.0, -1.0]]
    >>> rounded(clamp(torch.tensor([[3.0, -3.0]]), turn_batch([[0, 0]]), asymmetric=0.5))
    [[1.0, -0.5]]

    Raises:
        RecipeError: the limits leave nothing, or turn signs.
    """
    if limit <= 0 or (asymmetric is not None and asymmetric < 0):
        raise RecipeError(
            f"shape 'clamp': limit={limit}, asymmetric={asymmetric} are no limits around 0.",
            "Give limit above 0, and asymmetric as a size, 0 or more.",
        )
    low = -(limit if asymmetric is None else asymmetric)
    return changed(credit, batch, lambda A: A.clamp(low, limit))
