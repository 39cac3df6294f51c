"""CANON: compare with those who hesitated more, or less; or who were longer, or shorter."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, group_size, group_sum, over_turns, signal


@component(
    "credit",
    "canon",
    paper="2509.23962",
    asks=("by",),
    bias="biased: which half is the baseline depends on the trajectory itself",
)
def canon(
    batch: TurnBatch, *, by: str | None = "entropy", inter: float = 1.0, low: float = 1.0, high: float = 1.0
) -> Tensor:
    """Return minus the mean return of the other half of the group, halves by how much the policy hesitated.

    A_i = μ·(w·R_i − w′·mean R of the other half) + (1 − μ)·(R_i − mean R of its own half), μ = ``inter``, halves by a
    metric: the mean of the signal ``by`` over the trajectory's turns; without ``by`` their number. Chen et al. 2025. With
    μ = ½ and equal halves it is Dr.GRPO. w and w′ are ``low`` and ``high``, what returns of the half with the lower and with
    the higher metric count. The paper's direction α is ``low`` with entropy (below 1 it favours exploring) and ``high``
    with lengths (below 1 it favours the short).

    Ours: length counts turns, and entropy is a mean over turns (theirs: over tokens). Trajectories that are equal at the
    border belong to both halves in part, so that the order of the batch does not matter; the paper breaks such ties by order.

    Worked by hand: entropies 1, 2 | 3, 4 with R = 1, 0 | 1, 1: 1 − 1, 0 − 1, 1 − ½, 1 − ½.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1], [0], [1], [1]], signals={"entropy": [[1], [2], [3], [4]]})
    >>> rounded(canon(batch)), rounded(canon(batch, inter=0.0))
    ([[0.0], [-1.0], [0.5], [0.5]], [[0.5], [-0.5], [0.0], [0.0]])
    >>> rounded(canon(batch, inter=0.5))
    [[0.25], [-0.75], [0.25], [0.25]]
    >>> batch = turn_batch([[1], [0, 0], [0, 0, 1], [0, 0, 0, 1]])
    >>> rounded(canon(batch, by=None, high=0.5)[:, :1])  # by length: 1 − ½, 0 − ½, ½ − ½, ½ − ½
    [[0.5], [-0.5], [0.0], [0.0]]
    """
    R_B, group_B = batch.return_B, batch.group_B
    metric_B = batch.length_B if by is None else _mean(signal(batch, by), batch)
    peers_BB = group_B[:, None] == group_B[None, :]
    before_B = ((metric_B[None, :] < metric_B[:, None]) & peers_BB).sum(1)
    equal_B = ((metric_B[None, :] == metric_B[:, None]) & peers_BB).sum(1)
    half_B = group_size(group_B) // 2
    low_B = ((half_B - before_B).to(R_B.dtype) / equal_B).clamp(0, 1)  # how much of it is in the lower half
    mean_low_B = group_sum(low_B * R_B, group_B) / group_sum(low_B, group_B).clamp(min=1)
    high_B = 1 - low_B
    mean_high_B = group_sum(high_B * R_B, group_B) / group_sum(high_B, group_B).clamp(min=1)
    weighed_B = (low * low_B + high * high_B) * R_B
    other_B = low_B * high * mean_high_B + high_B * low * mean_low_B
    own_B = low_B * mean_low_B + high_B * mean_high_B
    advantage_B = inter * (weighed_B - other_B) + (1 - inter) * (R_B - own_B)
    return over_turns(advantage_B.masked_fill(alone(group_B), 0.0), batch)


def _mean(x_BK: Tensor, batch: TurnBatch) -> Tensor:
    """Over the turns of each trajectory, (B,)."""
    return (x_BK * batch.mask_BK).sum(-1) / batch.length_B.clamp(min=1)
