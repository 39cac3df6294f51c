"""GRPO: the return of a trajectory, in standard deviations from the mean of its group."""

from typing import Literal

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, group_z, over_turns


@component(
    "credit",
    "grpo",
    paper="2402.03300",
    bias="biased: divides by the standard deviation of a group that the trajectory itself belongs to",
)
def grpo(batch: TurnBatch, *, normalize: Literal["std", "none"] = "std") -> Tensor:
    """One advantage per trajectory, its return standardised within its group.

    A_i = (R_i − mean_g R) / (std_g R + 1e-6) with the sample standard deviation, given to every turn.
    DeepSeekMath (Shao et al. 2024), §4.1, in its outcome form. Groups of one, and groups whose returns
    are all equal, get 0.

    ``normalize="none"`` leaves the division out, which is Dr.GRPO's credit (see ``dr_grpo``).
    Left out: the process form (rewards standardised per step, then summed), which is biased when the
    policy chooses its length; see ``grpo_process``. The KL term is a loss of its own.

    Worked by hand: R = [1, 0, 0, 0], mean 1/4, std √(3/4/3) = 1/2.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(grpo(turn_batch([[0, 1], [0], [0], [0, 0]])), 5)
    [[1.5, 1.5], [-0.5, 0.0], [-0.5, 0.0], [-0.5, -0.5]]
    """
    if normalize == "none":
        return over_turns(batch.return_B - group_mean(batch.return_B, batch.group_B), batch)
    return over_turns(group_z(batch.return_B, batch.group_B), batch)
