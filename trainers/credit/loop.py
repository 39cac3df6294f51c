"""LOOP: leave-one-out advantages, the small ones dropped."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, over_turns, peers_mean


@component("credit", "loop", paper="2502.01600", bias="biased: advantages near zero are dropped")
def loop(batch: TurnBatch, *, smallest: float = 0.01) -> Tensor:
    """RLOO's advantage, without the trajectories that it hardly concerns.

    A_i = R_i − (1/(n−1)) Σ_{j≠i} R_j, and 0 where |A_i| < ``smallest``. LOOP (Chen et al. 2025); its
    asymmetric clip [1/(1+ε), 1+ε] is ``loss: clip`` with low = ε/(1+ε), high = ε. Left out: rounding the
    number of kept trajectories to the worker count.

    Worked by hand: R = [1, 0.5, 0, 0.5]; 1 − 1/3, 0.5 − 0.5, …

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(loop(turn_batch([[1], [0.5], [0], [0.5]])))
    [[0.666667], [0.0], [-0.666667], [0.0]]
    """
    advantage_B = batch.return_B - peers_mean(batch.return_B, batch.group_B)
    dropped_B = alone(batch.group_B) | (advantage_B.abs() < smallest)
    return over_turns(advantage_B.masked_fill(dropped_B, 0.0), batch)
