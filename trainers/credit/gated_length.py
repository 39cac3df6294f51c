"""GRPO-λ: successes pay for their length, in the groups that succeed most and in no others."""

from math import ceil

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import EPS, group_mean, group_sum, group_z, over_turns, signal


@component(
    "credit",
    "gated_length",
    paper="2505.18086",
    asks=("by",),
    bias="biased: pays for brevity where the group succeeds, standardised over a group that the trajectory belongs to",
)
def gated_length(
    batch: TurnBatch,
    *,
    share: float = 0.2,
    alpha: float = 0.2,
    success: float = 1.0,
    by: str | None = "tokens",
) -> Tensor:
    """Success less a price of length, standardised within the group; the price only in the most successful groups.

    r = 1 − α·σ((L − mean L)/std L) of a success, mean and deviation (population) over the successes of its group, 0 of a
    failure; in all groups but the share λ of the batch (rounded up) that succeed most often r is 1 or 0. A is r standardised within the
    group. GRPO-λ (Dai et al. 2025): hard groups never pay for length. L is the sum of the signal ``by`` over the turns of a
    trajectory, its tokens; without ``by`` its number of turns. λ = 0.2 and α = 0.2 are not sure to be the paper's. Ours: a group is
    among the share if it succeeds as often as one that is, so that the order of the batch decides nothing.

    Worked by hand: successes of 100, 200, 300 tokens, a failure of 400: deviation 81.65, z = −1.2247, 0, 1.2247.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1], [1], [1], [0]], signals={"tokens": [[100], [200], [300], [400]]})
    >>> [round(x, 4) for x in priced(batch, 1.0, 0.2, 1.0, "tokens").tolist()]
    [0.9546, 0.9, 0.8454, 0.0]
    >>> rounded(gated_length(batch), 4)
    [[0.6183], [0.4976], [0.3769], [-1.4927]]

    Of five groups a fifth pays: the one of two successes, and not that of two successes and a failure.

    >>> paid, size = [[1]] * 4 + [[0]] * 4, [[1], [3], [1], [3], [5], [1], [1], [1]]
    >>> batch = turn_batch(paid, [0, 0, 1, 1, 1, 2, 3, 4], signals={"tokens": size})
    >>> [row[0] for row in rounded(gated_length(batch), 4)]
    [0.7071, -0.7071, 0.5773, 0.5773, -1.1547, 0.0, 0.0, 0.0]

    Raises:
        RecipeError: ``share`` is not within 0 and 1.
    """
    if not 0 <= share <= 1:
        raise RecipeError(
            f"credit 'gated_length': share={share} is no part of the groups.", "Give it from 0 to 1."
        )
    return over_turns(group_z(priced(batch, share, alpha, success, by), batch.group_B), batch)


def priced(batch: TurnBatch, share: float, alpha: float, success: float, by: str | None) -> Tensor:
    """The success of each trajectory less the price of its length, (B,)."""
    group_B, mask_BK = batch.group_B, batch.mask_BK
    solved_B = (batch.return_B >= success - 1e-6).to(batch.reward_BK.dtype)
    size_BK = mask_BK if by is None else signal(batch, by) * mask_BK
    length_B = size_BK.sum(-1).to(solved_B.dtype)
    count_B = group_sum(solved_B, group_B).clamp(min=1)
    off_B = length_B - group_sum(length_B * solved_B, group_B) / count_B
    std_B = (group_sum(off_B**2 * solved_B, group_B) / count_B).sqrt()
    price_B = alpha * torch.sigmoid(off_B / (std_B + EPS))
    pays_B = _most_successful(group_mean(solved_B, group_B), group_B, share)
    return solved_B * (1 - price_B * pays_B)


def _most_successful(rate_B: Tensor, group_B: Tensor, share: float) -> Tensor:
    """True for members of the share of groups that succeed most often, and of those that equal the last of them, (B,)."""
    groups, label_B = group_B.unique(return_inverse=True)
    rate_G = rate_B.new_zeros(len(groups)).index_put((label_B,), rate_B)
    count = ceil(share * len(groups) - 1e-9)
    if count == 0:
        return torch.zeros_like(group_B, dtype=torch.bool)
    return rate_B >= rate_G.sort(descending=True).values[count - 1]
