"""CANON: compare with those who were longer, or shorter."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, group_size, group_sum, over_turns


@component(
    "credit",
    "canon",
    paper="2509.23962",
    bias="biased: which half is the baseline depends on the trajectory's own length",
)
def canon(batch: TurnBatch, *, inter: float = 1.0, longer: float = 1.0) -> Tensor:
    """Return minus the mean return of the longer half of the group, for the shorter half, and vice versa.

    A_i = μ·(R_i − mean R of the other half) + (1 − μ)·(R_i − mean R of its own half), halves by length,
    μ = ``inter``. Chen et al. 2025, with length as the metric. With μ = ½ and equal halves it is Dr.GRPO.
    ``longer`` is the paper's direction α: where halves are compared, returns of the longer one count α times,
    so that α < 1 favours short trajectories.

    Ours: length counts turns. Trajectories of equal length at the border belong to both halves in part, so
    that the order of the batch does not matter; the paper breaks such ties by order.

    Worked by hand: lengths 1, 2 | 3, 4 with R = 1, 0 | 1, 1: 1 − 1, 0 − 1, 1 − ½, 1 − ½.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1], [0, 0], [0, 0, 1], [0, 0, 0, 1]])
    >>> rounded(canon(batch)[:, :1]), rounded(canon(batch, inter=0.0)[:, :1])
    ([[0.0], [-1.0], [0.5], [0.5]], [[0.5], [-0.5], [0.0], [0.0]])
    >>> rounded(canon(batch, longer=0.5)[:, :1])  # 1 − ½, 0 − ½, ½ − ½, ½ − ½
    [[0.5], [-0.5], [0.0], [0.0]]
    """
    R_B, group_B, length_B = batch.return_B, batch.group_B, batch.length_B
    peers_BB = group_B[:, None] == group_B[None, :]
    shorter_B = ((length_B[None, :] < length_B[:, None]) & peers_BB).sum(1)
    equal_B = ((length_B[None, :] == length_B[:, None]) & peers_BB).sum(1)
    half_B = group_size(group_B) // 2
    low_B = ((half_B - shorter_B).to(R_B.dtype) / equal_B).clamp(0, 1)  # how much of it is in the short half
    mean_low_B = group_sum(low_B * R_B, group_B) / group_sum(low_B, group_B).clamp(min=1)
    high_B = 1 - low_B
    mean_high_B = group_sum(high_B * R_B, group_B) / group_sum(high_B, group_B).clamp(min=1)
    weighed_B = (low_B + longer * high_B) * R_B
    other_B = low_B * longer * mean_high_B + high_B * mean_low_B
    own_B = low_B * mean_low_B + high_B * mean_high_B
    advantage_B = inter * (weighed_B - other_B) + (1 - inter) * (R_B - own_B)
    return over_turns(advantage_B.masked_fill(alone(group_B), 0.0), batch)
