"""IGPO: turns are paid for the information that they bring."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import cells, group_z, last_turn, over_cells, reverse_cumsum, signal


@component(
    "credit",
    "igpo",
    paper="2510.14967",
    needs=("information",),
    bias="biased: pays for information, standardised and then summed over the turns that are left",
)
def igpo(batch: TurnBatch, *, discount: float = 1.0) -> Tensor:
    """Information gains and outcomes, each standardised within the group, summed from each turn on.

    ``information`` is how much likelier the right answer became by the turn, log p_k − log p_{k−1}. Turns but
    the last get z(gain) over all such turns of the group, last turns z(reward) over the group;
    A_k = Σ_{l≥k} γ^{l−k} z_l. Wang et al. 2025, camera-ready form; sample standard deviation is assumed.

    Worked by hand: gains 0.5, 1 | −0.2 and outcomes 0.8 | 0: z = 0.1106, 0.9401 | −1.0507 and ±0.7071.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 0, 0.8], [0, 0]], signals={"information": [[0.5, 1.0, 0], [-0.2, 0]]})
    >>> rounded(igpo(batch))
    [[1.757806, 1.647206, 0.707106], [-1.757806, -0.707106, 0.0]]
    """
    mask_BK, last_BK = batch.mask_BK, last_turn(batch.mask_BK)
    group_BK = cells(batch.group_B[:, None].expand_as(mask_BK))
    gain_BK = over_cells(group_z, signal(batch, "information"), group_BK, mask_BK & ~last_BK)
    outcome_BK = over_cells(group_z, batch.reward_BK, group_BK, last_BK)
    return reverse_cumsum(gain_BK + outcome_BK, batch.discount_BK(discount)) * mask_BK
