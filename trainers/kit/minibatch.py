"""Arithmetic that losses of whole minibatches share: sums per trajectory, what belongs to a group, and its pairs."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.trainers.core import TokenBatch, WholeBatch
from turnwise.trainers.kit.tokens import bounded


def trajectory_sum(x_RT: Tensor, batch: WholeBatch) -> Tensor:
    """Sum of ``x`` over each trajectory's sampled tokens, (B,)."""
    total_B = torch.zeros(len(batch.group_B), dtype=x_RT.dtype)
    return total_B.index_add(0, batch.trajectory_R, (x_RT * batch.mask_RT).sum(1))


def token_count(batch: WholeBatch) -> Tensor:
    """Number of sampled tokens of each trajectory, (B,); 0 where the filter dropped it."""
    return trajectory_sum(batch.mask_RT.to(batch.logp_RT.dtype), batch)


def of_trajectory(x_B: Tensor, batch: WholeBatch) -> Tensor:
    """Repeat the number of each trajectory for each of its rows, (R, 1)."""
    return x_B[batch.trajectory_R][:, None]


def group_members(batch: WholeBatch, *, played: bool = False) -> Iterator[Tensor]:
    """The trajectories of each group, (M,): those that are read, which may be none; or all that were ``played``."""
    there_B = torch.ones_like(batch.success_B) if played else token_count(batch) > 0
    for group in range(int(batch.group_B.max()) + 1 if len(batch.group_B) else 0):
        yield ((batch.group_B == group) & there_B).nonzero()[:, 0]


def pairs(batch: WholeBatch) -> Iterator[tuple[Tensor, Tensor]]:
    """Of each group the pairs of trajectories that are read, the one that earned more and the one that earned less, (P,)."""
    for member_M in group_members(batch):
        gap_MM = batch.return_B[member_M][:, None] - batch.return_B[member_M][None]
        better, worse = (gap_MM > 1e-9).nonzero(as_tuple=True)
        yield member_M[better], member_M[worse]


def mean_over_pairs(batch: WholeBatch, loss_P: Iterator[Tensor]) -> Tensor:
    """The mean over pairs, then over all groups of the minibatch: one without pairs gives 0, and counts."""
    total = batch.logp_RT.sum() * 0
    groups = 0
    for one_P in loss_P:
        groups += 1
        if len(one_P):
            total = total + one_P.mean()
    return total / max(1, groups)


def against_reference(batch: TokenBatch | WholeBatch, loss: str) -> Tensor:
    """log π − log π_ref, clamped to ±20 and 0 off the mask, (R, T).

    Raises:
        RecipeError: there is no reference model.
    """
    if batch.reference_logp_RT is None:
        raise RecipeError(
            f"The loss {loss!r} needs a reference model.",
            "Train by a recipe, whose trainer loads one, or give the batch reference_logp_RT.",
        )
    return bounded(batch.logp_RT - batch.reference_logp_RT, batch.mask_RT)
