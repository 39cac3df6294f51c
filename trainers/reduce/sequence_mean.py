"""Every trajectory counts the same."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import RowMask
from turnwise.trainers.kit.tokens import unit_sum, units


@component(
    "reduce",
    "sequence_mean",
    paper="2402.03300",
    bias="biased: a trajectory's gradient is divided by its own length",
)
def sequence_mean(rows: RowMask) -> Tensor:
    """Mean over the sampled tokens of a trajectory, then over trajectories: GRPO's original form, eq. 3.

    w = 1 / (number of trajectories · tokens of this trajectory). A long failure is punished less per
    token than a short one, which favours long failures (Dr.GRPO, 2503.20783, §3.1). Trajectories without a
    sampled token are left out of the count.

    Worked by hand: trajectories of 3 and 1 tokens, the second in two rows of which one is empty.

    >>> from turnwise.trainers.kit.toy_batches import rounded, row_mask
    >>> rounded(sequence_mean(row_mask([[0, 0, -1, 1], [0], [-1]], trajectory=[0, 1, 1])))
    [[0.166667, 0.166667, 0.0, 0.166667], [0.5, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """
    unit_RT, n = units(rows, "trajectory")
    mask_RT = rows.mask_RT.float()
    return mask_RT / (n * unit_sum(mask_RT, unit_RT, n)).clamp(min=1)
