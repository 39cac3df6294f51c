"""IterResearch: the outcome discounted by the turns still to come, standardised over the group's turns."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import cells, group_z, over_cells, over_turns, reverse_cumsum


@component(
    "credit",
    "iter_research",
    paper="2511.07327",
    bias="biased: discounts, and standardises over turns of the group, among them the trajectory's own",
)
def iter_research(batch: TurnBatch, *, discount: float = 0.95) -> Tensor:
    """Every turn gets γ^(turns still to come)·R, compared with all turns of the group.

    r_k = γ^{K−k}·R_i;  A = (r − mean)/(std + 1e-6) over all turns of all rollouts of the group. Chen et al.
    2025 (efficiency-aware policy optimisation): finishing earlier pays more. Sample standard deviation and
    γ = 0.95 are ours, the paper's are unknown to us. Left out: down-sampling of turns to a multiple of the
    workers, the sequence ratio (a loss).

    Worked by hand: a success of three turns [0.9025, 0.95, 1], a failure of two [0, 0].

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(iter_research(turn_batch([[0, 0, 1], [0, 0]])))
    [[0.636096, 0.727104, 0.822901], [-1.093051, -1.093051, 0.0]]
    """
    mask_BK = batch.mask_BK
    left_BK = reverse_cumsum(mask_BK.to(batch.reward_BK.dtype)) - 1
    reward_BK = over_turns(batch.return_B, batch) * discount ** left_BK.clamp(min=0)
    group_BK = cells(batch.group_B[:, None].expand_as(mask_BK))
    return over_cells(group_z, reward_BK, group_BK, mask_BK)
