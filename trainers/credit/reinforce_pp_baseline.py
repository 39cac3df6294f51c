"""REINFORCE++ with a group baseline, standardised over the whole batch."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, over_turns, whiten


@component(
    "credit",
    "reinforce_pp_baseline",
    paper="2501.03262",
    bias="biased: whitened over a batch that the turn itself belongs to",
)
def reinforce_pp_baseline(batch: TurnBatch) -> Tensor:
    """Return minus group mean, then whitened over all turns of the batch.

    s_i = R_i − mean_g R;  A = (s − mean s) / sqrt(var s + 1e-8) over the turns of the batch. Hu et al. 2025,
    REINFORCE++-baseline: the scale is global, so an easy group is not blown up. Groups of one get s = 0
    (the released code keeps R).

    Ours: the paper whitens over tokens, here each turn counts once.

    Worked by hand: s = [0.5, 0.5, −0.5, 0, 0], mean 0.1, var 0.175 (n − 1).

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(reinforce_pp_baseline(turn_batch([[0, 1], [0], [1], [1]], [0, 0, 1, 1])))
    [[0.956183, 0.956183], [-1.434274, 0.0], [-0.239046, 0.0], [-0.239046, 0.0]]
    """
    score_B = batch.return_B - group_mean(batch.return_B, batch.group_B)
    return whiten(over_turns(score_B, batch), batch.mask_BK)
