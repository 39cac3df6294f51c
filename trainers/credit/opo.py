"""OPO: the baseline that has the least variance, if gradients grow with length."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, group_sum, over_turns


@component(
    "credit",
    "opo",
    paper="2505.23585",
    bias="biased: the baseline includes the trajectory itself, weighted by its length",
)
def opo(batch: TurnBatch) -> Tensor:
    """Return minus the mean of the group, each trajectory weighted by its length.

    A_i = R_i − Σ_j L_j R_j / Σ_j L_j. Hao et al. 2025, "On-policy RL with optimal reward baseline".

    Ours: L counts turns, the paper counts tokens.

    Worked by hand: R = [1, 0], L = [3, 1], baseline 3/4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(opo(turn_batch([[0, 0, 1], [0]])))
    [[0.25, 0.25, 0.25], [-0.75, 0.0, 0.0]]
    """
    length_B = batch.length_B.to(batch.return_B.dtype)
    total_B = group_sum(length_B, batch.group_B).clamp(min=1)
    baseline_B = group_sum(length_B * batch.return_B, batch.group_B) / total_B
    return over_turns((batch.return_B - baseline_B).masked_fill(alone(batch.group_B), 0.0), batch)
