"""RL-PLUS: the return of a trajectory minus the mean of the policy's own ones in its group."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_sum, over_turns, signal


@component(
    "credit",
    "rl_plus",
    paper="2508.00222",
    needs=("foreign",),
    bias="unbiased: up to the factor (n − 1)/n of n own trajectories, where no other takes part",
)
def rl_plus(batch: TurnBatch) -> Tensor:
    """Return minus the mean return of those members of the group in which nobody else chose a turn.

    A_i = R_i − mean of R over the own rows, no division; the rows of a guide or of a source have the same baseline. Dong et al.
    2025, RL-PLUS: an external success beside own failures does not make their baseline better than they are. A group without
    own rows has nothing to be compared with and is given nothing (ours). Goes with the guide `acnchor` and the loss `rl_plus`.

    Worked by hand: own returns 1, 0, 0 with mean 1/3, and one external success.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> marks = {"foreign": [[0], [0], [0], [1]]}
    >>> rounded(rl_plus(turn_batch([[1], [0], [0], [1]], signals=marks)), 4)
    [[0.6667], [-0.3333], [-0.3333], [0.6667]]
    """
    helped_B = ((signal(batch, "foreign") * batch.mask_BK) > 0).any(-1)
    own_B = (~helped_B).to(batch.return_B.dtype)
    total_B, count_B = (group_sum(x_B, batch.group_B) for x_B in (own_B * batch.return_B, own_B))
    gap_B = batch.return_B - total_B / count_B.clamp(min=1)
    return over_turns(gap_B * (count_B > 0), batch)
