"""IterResearch: the outcome discounted by the turns still to come, standardised over the group's turns."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import cells, group_z, over_cells, over_turns, reverse_cumsum


@component(
    "credit",
    "iter_research",
    paper="2511.07327",
    bias="biased: discounts, and standardises over turns of the group, among them the trajectory's own",
)
def iter_research(batch: TurnBatch, *, discount: float = 0.95, workers: int = 1) -> Tensor:
    """Every turn gets γ^(turns still to come)·R, compared with all turns of the group.

    r_k = γ^{K−k}·R_i;  A = (r − mean)/(std + 1e-6) over all turns of all rollouts of the group. Chen et al.
    2025 (efficiency-aware policy optimisation): finishing earlier pays more. Each turn is a sample, and of the |C|
    of an update ⌊|C|/W⌋·W are learned, so that they divide among ``workers`` W; the others get 0, drawn by
    chance (by their number alone: ours, so that a run can be repeated). Their sequence ratio is the loss `gspo`. Sample
    standard deviation and γ = 0.95 are ours, the paper's are unknown to us.

    Worked by hand: a success of three turns [0.9025, 0.95, 1], a failure of two [0, 0]; then 13 turns for 4 workers.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(iter_research(turn_batch([[0, 0, 1], [0, 0]])))
    [[0.636096, 0.727104, 0.822901], [-1.093051, -1.093051, 0.0]]
    >>> many = turn_batch([[0] * 6 + [1], [0] * 6])
    >>> int(iter_research(many).count_nonzero()), int(iter_research(many, workers=4).count_nonzero())
    (13, 12)

    Raises:
        RecipeError: ``workers`` is below 1.
    """
    if workers < 1:
        raise RecipeError(f"credit 'iter_research': workers={workers} take no turn.", "Give 1 or more.")
    mask_BK = batch.mask_BK
    left_BK = reverse_cumsum(batch.acts_BK.to(batch.reward_BK.dtype)) - 1
    reward_BK = over_turns(batch.return_B, batch) * discount ** left_BK.clamp(min=0)
    group_BK = cells(batch.group_B[:, None].expand_as(mask_BK))
    advantage_BK = over_cells(group_z, reward_BK, group_BK, mask_BK)
    turns_N = mask_BK.nonzero()
    n = len(turns_N)
    left_out = derive_rng("iter_research", n).sample(range(n), n % workers)
    advantage_BK[tuple(turns_N[torch.tensor(left_out, dtype=torch.long)].T)] = 0.0
    return advantage_BK
