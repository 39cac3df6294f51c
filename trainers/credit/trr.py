"""TRR++ of Absolute Zero: the return of a trajectory, standardised among all that play its role in the batch."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_z, over_turns


@component(
    "credit",
    "trr",
    paper="2505.03335",
    bias="biased: divides by the standard deviation of a batch's trajectories of one role, to which the trajectory itself belongs",
)
def trr(batch: TurnBatch) -> Tensor:
    """Standardise the return of a trajectory among all of the batch that play its role, whatever their tasks.

    A_i = (R_i − mean_role R) / (std_role R + 1e-6) with the sample standard deviation, given to every turn: Task-Relative
    REINFORCE++ (Zhao et al. 2025, Absolute Zero), which has a baseline for each of its six cells of task (deduction, abduction,
    induction) and role (proposer, solver). A role here is the environment, the option ``role`` of a task and the agent (``TurnBatch.role_B``),
    so that agents of one episode, and what proposers make, are apart from the rest. Where nothing tells roles apart it is
    REINFORCE++ over the batch. It needs no group: one episode of a task will do. A role that is played once gets 0.

    Worked by hand: the returns 1, 0, 0, 0 of one role have the mean 1/4 and the deviation 1/2; 0.5 and 0.9 of another 0.7 and 0.2828.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(trr(turn_batch([[0, 1], [0.5], [0], [0], [0.9], [0]], [0, 0, 1, 1, 2, 2], role=[0, 1, 0, 0, 1, 0])), 4)
    [[1.5, 1.5], [-0.7071, 0.0], [-0.5, 0.0], [-0.5, 0.0], [0.7071, 0.0], [-0.5, 0.0]]
    """
    role_B = torch.zeros_like(batch.group_B) if batch.role_B is None else batch.role_B
    return over_turns(group_z(batch.return_B, role_B), batch)
