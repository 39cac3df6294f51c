"""Every token counts the same."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import RowMask


@component(
    "reduce",
    "token_mean",
    paper="2503.14476",
    bias="biased: the denominator depends on lengths that the policy chooses",
)
def token_mean(rows: RowMask) -> Tensor:
    """Mean over all sampled tokens of the batch: long trajectories weigh more. From DAPO.

    w = 1 / (number of sampled tokens).

    >>> from turnwise.trainers.kit.toy_batches import rounded, row_mask
    >>> rounded(token_mean(row_mask([[0, 0, -1, 1], [0]])))
    [[0.25, 0.25, 0.0, 0.25], [0.25, 0.0, 0.0, 0.0]]
    """
    return rows.mask_RT.float() / rows.mask_RT.sum().clamp(min=1)
