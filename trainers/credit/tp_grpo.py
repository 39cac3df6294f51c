"""TP-GRPO: within a success wrong thoughts cost something; within a failure only wrong thoughts cost."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, group_mean, group_z, over_turns, signal


@component(
    "credit",
    "tp_grpo",
    paper="2507.23317",
    needs=("wrong",),
    bias="biased: GRPO's standardisation, and turns count by a judge's opinion",
)
def tp_grpo(batch: TurnBatch, *, alpha: float = 1.0, success: float = 1.0) -> Tensor:
    """GRPO's advantage, turn by turn: less in wrong thoughts of successes, none in sound thoughts of failures.

    A success: A_k = z_i − α·(success rate of the group)·wrong_k; a failure: A_k = z_i·wrong_k. ``wrong`` in [0, 1] is
    the judges' verdict on the turn. He et al. 2025. A thought is a run of turns
    with one verdict: all of them get the same, so runs need not be found. α = 1 is ours.

    Worked by hand: outcomes 1, 0, 0, 1, rate 0.5: 0.8660, 0.8660 − 0.5 | −0.8660, 0.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"wrong": [[0, 1], [1, 0], [1, 1], [0, 0]]}
    >>> rounded(tp_grpo(turn_batch([[0, 1], [0, 0], [0, 0], [0, 1]], signals=signals)), 4)[:2]
    [[0.866, 0.366], [-0.866, 0.0]]
    """
    wrong_BK = signal(batch, "wrong") * batch.mask_BK
    solved_B = batch.return_B >= success - 1e-6
    rate_B = group_mean(solved_B.to(wrong_BK.dtype), batch.group_B)
    z_B = group_z(batch.return_B, batch.group_B)
    won_BK = over_turns(z_B, batch) - alpha * rate_B[:, None] * wrong_BK
    advantage_BK = won_BK.where(solved_B[:, None], z_B[:, None] * wrong_BK)
    return advantage_BK.masked_fill(alone(batch.group_B)[:, None], 0.0)
