"""What is descended: a weighted sum of reduced losses, advantages corrected for the engine's gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

from turnwise.trainers.core import Correction, Loss, Reduce, TokenBatch


class Term(NamedTuple):
    """A loss with its weight in the sum."""

    name: str
    loss: Loss
    weight: float


@dataclass(frozen=True)
class Objective:
    """What is descended: Σ weight · reduce(loss), advantages corrected for the engine's gap."""

    terms: Sequence[Term]
    reduce: Reduce
    correction: Correction
    reference: bool = False  # whether a loss compares with the frozen reference


def policy_loss(
    batch: TokenBatch, weight_RT: Tensor, objective: Objective
) -> tuple[Tensor, dict[str, Tensor]]:
    """Σ weight · reduce(loss) over a micro-batch, and means over its tokens to be shown."""
    correction_RT = objective.correction(batch)
    batch = replace(batch, advantage_RT=batch.advantage_RT * correction_RT)
    mask_RT, n = batch.mask_RT, batch.mask_RT.sum().clamp(min=1)
    gap_RT = (batch.old_logp_RT - batch.behaviour_logp_RT).abs() * mask_RT
    loss = batch.logp_RT.new_zeros(())
    metrics = {
        "entropy": (batch.entropy_RT.detach() * mask_RT).sum() / n,
        "engine_gap": gap_RT.sum() / n,
        "correction": (correction_RT * mask_RT).sum() / n,
    }
    for term in objective.terms:
        found = term.loss(batch)
        loss = loss + term.weight * (weight_RT * found.loss_RT).sum()
        metrics |= dict(found.metrics)
    return loss, metrics
