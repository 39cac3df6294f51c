"""LOOP: small advantages are dropped."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import changed


@component("shape", "loop", paper="2502.01600", bias="biased: advantages near zero are dropped")
def loop(credit: Tensor | TokenCredit, batch: TurnBatch, *, smallest: float = 0.01) -> Tensor | TokenCredit:
    """A, and 0 where |A| < ``smallest``.

    LOOP (Chen et al. 2025), over ``rloo``; its asymmetric clip [1/(1+ε), 1+ε] is ``loss: clip`` with low = ε/(1+ε),
    high = ε. Where A differs within a trajectory, turns or tokens are dropped, not trajectories. Left out: rounding the
    number of kept trajectories to the worker count.

    Worked by hand: A of R = [1, 0.5, 0, 0.495]: 1 − 0.995/3, 0.5 − 1.495/3 = 0.001667, …

    >>> from turnwise.trainers.credit.rloo import rloo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1], [0.5], [0], [0.495]])
    >>> rounded(loop(rloo(batch), batch))
    [[0.668333], [0.0], [-0.665], [0.0]]
    """
    return changed(credit, batch, lambda A: A.masked_fill(A.abs() < smallest, 0.0))
