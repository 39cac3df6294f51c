"""REINFORCE: the return of a trajectory as it is."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import over_turns


@component("credit", "reinforce", bias="unbiased")
def reinforce(batch: TurnBatch) -> Tensor:
    """The return, given to every turn: no baseline, no division.

    A_i = R_i (Williams 1992). Its expected step is the policy gradient, and noisy where returns are not around 0. It is for rewards that compare already:
    Writing-Zero's ±1 against a member of the group that was drawn by chance are its advantages (`judge: writing_zero`,
    `reward: {name: own_probability, signal: against_one, weight: 1, format: 0}`, `filter: writing_zero`).

    Worked by hand: the book's group of eight, the first of which is the reference.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(reinforce(turn_batch([[0], [1], [1], [-1], [-1], [-1], [-1], [1]])))
    [[0.0], [1.0], [1.0], [-1.0], [-1.0], [-1.0], [-1.0], [1.0]]
    >>> rounded(reinforce(turn_batch([[0.5, 1.0], [0.0, -1.0]])))
    [[1.5, 1.5], [-1.0, -1.0]]
    """
    return over_turns(batch.return_B, batch)
