"""The denominator is a constant: no length bias."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import RowMask
from turnwise.trainers.kit.tokens import units


@component("reduce", "fixed_length", paper="2503.20783", bias="unbiased: up to the factor 1/length")
def fixed_length(rows: RowMask, *, length: int = 256) -> Tensor:
    """Sum over the tokens of a trajectory divided by a constant, then the mean over trajectories.

    w = 1 / (number of trajectories · length). Dr.GRPO (Liu et al. 2025), §3.1, where the constant is the
    largest length that may be generated; it only scales the loss. Trajectories without a sampled token
    are left out of the count.

    Worked by hand: two trajectories, length 4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, row_mask
    >>> rounded(fixed_length(row_mask([[0, 0, -1, 1], [0]]), length=4))
    [[0.125, 0.125, 0.0, 0.125], [0.125, 0.0, 0.0, 0.0]]
    """
    _, n = units(rows, "trajectory")
    return rows.mask_RT.float() / max(n * length, 1)
