"""Every turn counts the same."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import RowMask
from turnwise.trainers.kit.tokens import unit_sum, units


@component("reduce", "turn_mean", bias="biased: the denominator depends on lengths that the policy chooses")
def turn_mean(rows: RowMask) -> Tensor:
    """Mean over the tokens of a turn, then over all turns of the batch.

    w = 1 / (number of turns · tokens of this turn). A wordy turn weighs no more than a terse one; a long
    trajectory weighs more. A turn whose tokens lie in several rows is still one turn.

    Worked by hand: turns of 2, 1 and 1 tokens.

    >>> from turnwise.trainers.kit.toy_batches import rounded, row_mask
    >>> rounded(turn_mean(row_mask([[0, 0, -1, 1], [0]])))
    [[0.166667, 0.166667, 0.0, 0.333333], [0.333333, 0.0, 0.0, 0.0]]
    """
    unit_RT, n = units(rows, "turn")
    mask_RT = rows.mask_RT.float()
    return mask_RT / (n * unit_sum(mask_RT, unit_RT, n)).clamp(min=1)
