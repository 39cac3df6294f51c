"""DCPO's smoothed advantages: a task's earlier visits are remembered."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, group_std, over_turns, signal


@component(
    "credit",
    "dcpo",
    paper="2509.02333",
    needs=("past_visits", "past_mean", "past_std"),
    bias="biased: divides by standard deviations that the trajectory itself enters",
)
def dcpo(batch: TurnBatch) -> Tensor:
    """The return standardised within the group and over all visits of the task, mixed; the smaller mixture counts.

    With i visits, this one among them, μ, σ of the group (sample deviation), and over all visits
    μ̄' = ((i−1)·μ̄ + μ)/i, σ̄'² = ((i−1)·σ̄² + σ² + (i−1)/i·(μ̄ − μ)²)/i:
    A_new = (R − μ)/σ, A_all = (R − μ̄')/σ̄';  S_new = ((i−1)·A_new + A_all)/i, S_all = (A_new + (i−1)·A_all)/i;
    whichever is smaller in size, S_all if they tie. Yang et al. 2025, eq. 8–11. A group without spread still learns
    where the task used to have some. The per-token clip range is a loss. ``past_*`` are the run's memory of the
    task; on tasks that never come back this is GRPO.

    Worked by hand: R = 1, 1, 0, 0 after a visit with 1, 0, 0, 0 (mean 0.25, std 0.5): μ̄' = 0.375, σ̄' = 0.5543.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> past = {"past_visits": [1.0] * 4, "past_mean": [0.25] * 4, "past_std": [0.5] * 4}
    >>> rounded(dcpo(turn_batch([[1], [1], [0], [0]], signals=past)), 4)
    [[0.9967], [0.9967], [-0.7713], [-0.7713]]
    """
    R_B = batch.return_B
    before_B, past_B, spread_B = (signal(batch, f"past_{name}") for name in ("visits", "mean", "std"))
    i_B = before_B + 1
    mean_B, std_B = group_mean(R_B, batch.group_B), group_std(R_B, batch.group_B)
    all_B = (before_B * past_B + mean_B) / i_B
    square_B = before_B * spread_B**2 + std_B**2 + before_B / i_B * (past_B - mean_B) ** 2
    new_B = _standardised(R_B - mean_B, std_B)
    total_B = _standardised(R_B - all_B, (square_B / i_B).sqrt())
    smooth_new_B = (before_B * new_B + total_B) / i_B
    smooth_all_B = (new_B + before_B * total_B) / i_B
    tied_or_smaller_B = smooth_all_B.abs() <= smooth_new_B.abs() + 1e-12
    return over_turns(smooth_all_B.where(tied_or_smaller_B, smooth_new_B), batch)


def _standardised(off_B: Tensor, std_B: Tensor) -> Tensor:
    return (off_B / std_B.clamp(min=1e-6)).masked_fill(std_B < 1e-6, 0.0)
