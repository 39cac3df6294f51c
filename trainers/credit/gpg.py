"""GPG: group mean, scaled up for the groups that taught nothing."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, group_std, over_turns


@component(
    "credit",
    "gpg",
    paper="2504.02546",
    bias="biased: scaled by how many groups of the batch had any spread, the trajectory's own among them",
)
def gpg(batch: TurnBatch) -> Tensor:
    """Return minus group mean, times (groups of the batch)/(groups whose returns differ).

    A_i = (R_i − mean_g R)·M/M′. Chu et al. 2025: with groups of equal returns in the batch the step would
    shrink. (verl's version counts non-zero scores instead of usable groups.)

    Worked by hand: [1, 0, 0, 0] and [1, 1, 1, 1]: M/M′ = 2.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(gpg(turn_batch([[1], [0], [0], [0], [1], [1], [1], [1]], [0, 0, 0, 0, 1, 1, 1, 1])))
    [[1.5], [-0.5], [-0.5], [-0.5], [0.0], [0.0], [0.0], [0.0]]
    """
    group_B = batch.group_B
    usable_B = group_std(batch.return_B, group_B) > 1e-6
    scale = len(group_B.unique()) / max(len(group_B[usable_B].unique()), 1)
    return over_turns(scale * (batch.return_B - group_mean(batch.return_B, group_B)), batch)
