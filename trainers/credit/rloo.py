"""RLOO: the return of a trajectory minus the mean return of its peers."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, over_turns, peers_mean


@component("credit", "rloo", paper="2402.14740", bias="unbiased")
def rloo(batch: TurnBatch) -> Tensor:
    """One advantage per trajectory: its return minus the mean return of the others in its group.

    A_i = R_i − (1/(n−1)) Σ_{j≠i} R_j, given to every turn. Ahmadian et al. 2024. A group of one
    has nothing to compare with and gets 0 (other implementations pass R through).

    Worked by hand: R = [1, 0, 0, 0]; 1 − 0, and 0 − 1/3.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(rloo(turn_batch([[0, 1], [0], [0], [0, 0]])))
    [[1.0, 1.0], [-0.333333, 0.0], [-0.333333, 0.0], [-0.333333, -0.333333]]
    """
    advantage_B = batch.return_B - peers_mean(batch.return_B, batch.group_B)
    return over_turns(advantage_B.masked_fill(alone(batch.group_B), 0.0), batch)
