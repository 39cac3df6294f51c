"""Entropy in the advantage: uncertain turns get a little more."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import signal
from turnwise.trainers.kit.token_credit import changed


@component(
    "shape",
    "entropy_shaped",
    paper="2506.14758",
    needs=("entropy",),
    bias="biased: a bonus for turns in which the policy is uncertain",
)
def entropy_shaped(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, alpha: float = 0.4, kappa: float = 2.0
) -> Tensor | TokenCredit:
    """A plus α·H of the turn, but at most |A|/κ more.

    A′ = A + min(α·H_{i,k}, |A|/κ): no sign is turned for κ > 1. Cheng et al. 2025, "Reasoning with
    exploration", there over GRPO. Ours: H is the mean over the tokens of a turn; the paper shapes token by token.

    Worked by hand: A = ±0.70711, H = 0.8, 2: min(0.32, 0.35355), min(0.8, 0.35355).

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1], [0]], signals={"entropy": [[0.8], [2.0]]})
    >>> rounded(entropy_shaped(grpo(batch), batch))
    [[1.027106], [-0.353553]]
    """
    more_BK = alpha * signal(batch, "entropy") * batch.mask_BK
    return changed(credit, batch, lambda A, more: A + torch.minimum(more, A.abs() / kappa), more_BK)
