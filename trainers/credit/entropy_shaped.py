"""Entropy in the advantage: uncertain turns get a little more."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_z, over_turns, signal


@component(
    "credit",
    "entropy_shaped",
    paper="2506.14758",
    needs=("entropy",),
    bias="biased: GRPO's standardisation, plus a bonus for turns in which the policy is uncertain",
)
def entropy_shaped(batch: TurnBatch, *, alpha: float = 0.4, kappa: float = 2.0) -> Tensor:
    """GRPO's advantage plus α·H of the turn, but at most |A|/κ more.

    A′_{i,k} = A_i + min(α·H_{i,k}, |A_i|/κ): no sign is turned for κ > 1. Cheng et al. 2025, "Reasoning with
    exploration". Ours: H is the mean over the tokens of a turn; the paper shapes token by token.

    Worked by hand: A = ±0.70711, H = 0.8, 2: min(0.32, 0.35355), min(0.8, 0.35355).

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(entropy_shaped(turn_batch([[1], [0]], signals={"entropy": [[0.8], [2.0]]})))
    [[1.027106], [-0.353553]]
    """
    A_BK = over_turns(group_z(batch.return_B, batch.group_B), batch)
    bonus_BK = torch.minimum(alpha * signal(batch, "entropy"), A_BK.abs() / kappa)
    return A_BK + bonus_BK * batch.mask_BK
