"""Groups are trained on whose success lies in a band."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean


@component("filter", "band", paper="2504.03380")
def band(
    batch: TurnBatch,
    credit: Tensor | TokenCredit,
    *,
    low: float = 0.2,
    high: float = 0.8,
    success: float = 1.0,
) -> Tensor:
    """Weight 1 for the groups of which a share of [low, high] earned ``success`` or more; 0 for the others.

    Online difficulty filtering (Bae et al. 2025), of the group just played: the variance p·(1 − p) of a success bounds from below
    how much one step can gain. Their balanced filter has high = 1 − low. With `rollout.refill: {low: 0.2, high: 0.8}` an update
    plays until enough groups lie in the band, as there; without it the update is so much smaller. Ours: the weights of refilled
    groups, which leave the expected update that of the filter alone; left out: their asynchronous rollouts.

    It changes the objective: tasks that are nearly always or nearly never solved teach nothing.

    Worked by hand with eight episodes each: shares of 1/8, 1/4, 7/8 and 1/2.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> solved = (1, 2, 7, 4)
    >>> batch = turn_batch([[float(i < n)] for n in solved for i in range(8)], [g for g in range(4) for _ in range(8)])
    >>> band(batch, batch.reward_BK)[::8].tolist()
    [0.0, 1.0, 0.0, 1.0]
    >>> band(batch, batch.reward_BK, low=0.125, high=0.5)[::8].tolist()  # both ends are within
    [1.0, 1.0, 0.0, 1.0]

    Raises:
        RecipeError: the band is none.
    """
    if not 0 <= low <= high <= 1:
        raise RecipeError(
            f"filter 'band': [{low:g}, {high:g}] is no band of success.", "Give 0 ≤ low ≤ high ≤ 1."
        )
    solved_B = (batch.return_B >= success - 1e-6).to(batch.return_B.dtype)
    share_B = group_mean(solved_B, batch.group_B)
    return ((share_B >= low) & (share_B <= high)).to(torch.float32)
