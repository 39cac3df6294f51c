"""TP-GRPO: within a success wrong thoughts cost something; within a failure only wrong thoughts cost."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import alone, group_mean, signal
from turnwise.trainers.kit.token_credit import changed


@component(
    "shape",
    "tp_grpo",
    paper="2507.23317",
    needs=("wrong",),
    bias="biased: turns count by a judge's opinion",
)
def tp_grpo(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, alpha: float = 1.0, success: float = 1.0
) -> Tensor | TokenCredit:
    """A, less in wrong thoughts of successes, none in sound thoughts of failures.

    A success: A′_k = A_k − α·(success rate of the group)·wrong_k; a failure: A′_k = A_k·wrong_k. ``wrong`` in [0, 1] is
    the judges' verdict on the turn. He et al. 2025, over GRPO. A thought is a run of turns
    with one verdict: all of them get the same, so runs need not be found. α = 1 is ours, and so is that a trajectory
    without peers keeps what it has: one is no rate.

    Worked by hand: outcomes 1, 0, 0, 1, rate 0.5: 0.8660, 0.8660 − 0.5 | −0.8660, 0.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> signals = {"wrong": [[0, 1], [1, 0], [1, 1], [0, 0]]}
    >>> batch = turn_batch([[0, 1], [0, 0], [0, 0], [0, 1]], signals=signals)
    >>> rounded(tp_grpo(grpo(batch), batch), 4)[:2]
    [[0.866, 0.366], [-0.866, 0.0]]
    """
    wrong_BK = signal(batch, "wrong") * batch.mask_BK
    solved_B = batch.return_B >= success - 1e-6
    rate_B = group_mean(solved_B.to(wrong_BK.dtype), batch.group_B)
    kept_B1 = (solved_B | alone(batch.group_B))[:, None]
    weight_BK = wrong_BK.masked_fill(kept_B1, 1.0)
    cost_BK = alpha * rate_B[:, None] * wrong_BK * (solved_B & ~alone(batch.group_B))[:, None]
    return changed(credit, batch, lambda A, weight, cost: A * weight - cost, weight_BK, cost_BK)
