"""ArenaRL: places in a tournament, standardised."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_z, over_turns, signal


@component(
    "credit",
    "arena",
    paper="2601.06487",
    needs=("standing",),
    bias="biased: standardised places say nothing of how much better a trajectory was",
)
def arena(batch: TurnBatch) -> Tensor:
    """The place of a trajectory in its group's tournament, standardised within the group.

    ``standing`` is 1 − place/(n − 1), 1 for the champion and 0 for the last, of a seeded single elimination in
    which a judge compares two trajectories at a time (``trainers/kit/bracket.py``, the recipe's ``judge``). Zhang et al.
    2026, qqr's code. Where returns can be compared as numbers, ``rank`` needs no judge.

    Worked by hand: standings 1/3, 2/3, 0, 1.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> standing = {"standing": [[1 / 3], [2 / 3], [0.0], [1.0]]}
    >>> rounded(arena(turn_batch([[0], [0], [0], [0]], signals=standing)), 4)
    [[-0.3873], [0.3873], [-1.1619], [1.1619]]
    """
    standing_B = (
        (signal(batch, "standing") * batch.mask_BK).amax(1) if batch.mask_BK.any() else batch.return_B
    )
    return over_turns(group_z(standing_B, batch.group_B), batch)
