"""GRPO with process rewards: each reward standardised, then summed over the turns that are left."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import EPS, cells, group_mean, group_std, over_cells, reverse_cumsum


@component(
    "credit",
    "grpo_process",
    paper="2402.03300",
    bias="biased: the mean is subtracted once per turn that is left, so stopping early or late is rewarded",
)
def grpo_process(batch: TurnBatch) -> Tensor:
    """Rewards of all turns of a group standardised together, then summed from each turn on.

    r̃ = (r − mean r)/(std r + 1e-6) over all turns of the group;  A_{i,k} = Σ_{l≥k} r̃_{i,l}.
    DeepSeekMath (Shao et al. 2024), §4.1, in its process form. The number of subtracted means is the
    number of turns that i goes on to play: where the mean reward is positive, stopping is favoured.

    Worked by hand: rewards 0, 1 | 0: mean 1/3, std √(1/3) = 0.57735.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(grpo_process(turn_batch([[0, 1], [0]])))
    [[0.577349, 1.154699], [-0.577349, 0.0]]
    """
    mask_BK = batch.mask_BK
    group_BK = cells(batch.group_B[:, None].expand_as(mask_BK))
    deviation_BK = batch.reward_BK - over_cells(group_mean, batch.reward_BK, group_BK, mask_BK)
    scale_BK = over_cells(group_std, batch.reward_BK, group_BK, mask_BK) + EPS
    return reverse_cumsum(deviation_BK / scale_BK * mask_BK) * mask_BK
