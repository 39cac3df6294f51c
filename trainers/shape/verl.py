"""VERL: more advantage where hidden states spread more than usual."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import signal
from turnwise.trainers.kit.token_credit import changed


@component(
    "shape",
    "verl",
    paper="2509.23808",
    needs=("rank_drive",),
    bias="biased: a bonus for the trajectory's own hidden states",
)
def verl(credit: Tensor | TokenCredit, batch: TurnBatch, *, kappa: float = 2.0) -> Tensor | TokenCredit:
    """A plus how much the trajectory's states spread beyond what is usual, but at most |A|/κ more.

    A′ = A + min(max(d, 0), |A|/κ) with d the signal ``rank_drive`` of its trajectory: no sign is turned for κ > 1. VERL
    (Huang et al. 2025), there over GRPO; the signal `effective_rank` says how d is made.

    Worked by hand with d = 0.2165: 1 becomes 1.2165, −1 becomes −0.7835, and 0.3, of which half is less, 0.45.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0]] * 3, signals={"rank_drive": [[0.2165]] * 3})
    >>> rounded(verl(torch.tensor([[1.0], [-1.0], [0.3]]), batch), 4)
    [[1.2165], [-0.7835], [0.45]]
    """
    drive_BK = signal(batch, "rank_drive").clamp(min=0)
    return changed(credit, batch, lambda A, drive: A + torch.minimum(drive, A.abs() / kappa), drive_BK)
