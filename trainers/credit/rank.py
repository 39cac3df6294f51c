"""Ranks instead of returns: only who did better counts."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_size, group_z, over_turns


@component(
    "credit",
    "rank",
    paper="2601.06487",
    bias="biased: standardised ranks say nothing of how much better a return was",
)
def rank(batch: TurnBatch) -> Tensor:
    """The share of peers that a trajectory beat, standardised within its group.

    w_i = (1/(n−1)) Σ_{j≠i} (1[R_i > R_j] + ½·1[R_i = R_j]);  A_i = (w_i − mean w)/(std w + 1e-6).
    ArenaRL (Zhang et al. 2026) in its round-robin form, where the judge of a pair is the return. Its seeded
    tournament exists to save judgements, which returns do not need; for distinct returns it gives the
    same ranks.

    Worked by hand: R = [5, 7, 3, 9] beat 1, 2, 0, 3 of 3 peers.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(rank(turn_batch([[5], [7], [3], [9]])))
    [[-0.387297], [0.387297], [-1.161892], [1.161892]]
    """
    R_B, group_B = batch.return_B, batch.group_B
    peers_BB = (group_B[:, None] == group_B[None, :]).to(R_B.dtype)
    beats_BB = (R_B[:, None] > R_B[None, :]).to(R_B.dtype) + 0.5 * (R_B[:, None] == R_B[None, :])
    wins_B = ((beats_BB * peers_BB).sum(1) - 0.5) / (group_size(group_B) - 1).clamp(min=1)
    return over_turns(group_z(wins_B, group_B), batch)
