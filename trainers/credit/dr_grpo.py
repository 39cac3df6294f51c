"""Dr.GRPO: the return of a trajectory minus the mean of its group, and no division."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, over_turns


@component("credit", "dr_grpo", paper="2503.20783", bias="unbiased: up to the factor (n − 1)/n")
def dr_grpo(batch: TurnBatch) -> Tensor:
    """Return minus group mean; the factor (n − 1)/n that the own return costs is the same everywhere.

    A_i = R_i − mean_g R, given to every turn. Liu et al. 2025, §3.2: without GRPO's division by the
    standard deviation, easy and hard tasks keep their weight. Goes with ``reduce: fixed_length``.

    Worked by hand: R = [1, 0, 0, 0], mean 1/4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(dr_grpo(turn_batch([[0, 1], [0], [0], [0]])))
    [[0.75, 0.75], [-0.25, 0.0], [-0.25, 0.0], [-0.25, 0.0]]
    """
    return over_turns(batch.return_B - group_mean(batch.return_B, batch.group_B), batch)
