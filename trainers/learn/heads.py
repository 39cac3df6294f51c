"""Heads on the policy's hidden states, which are trained in the policy's own forward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

import torch
from torch import Tensor, nn

from turnwise.trainers.core import TokenCredit
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.passes import PassPart

Unit: TypeAlias = Literal["turns", "tokens", "trajectories"]


class Gap(NamedTuple):
    """Differences between a head's predictions and their targets in a micro-batch.

    Attributes:
        metric: the name under which its mean size is shown.
        gap_N: prediction − target, with gradient.
        unit: of what the whole minibatch's number is the denominator of the squares.
        owner_N: where an error is a sum over places of a trajectory, whose each place is: the error is the sum of its
            gaps, also of those in other micro-batches.
    """

    metric: str
    gap_N: Tensor
    unit: Unit
    owner_N: Tensor | None = None


class Head(Protocol):
    """A head, and what it is fitted to."""

    @property
    def module(self) -> nn.Module | None: ...

    @property
    def sums_over_turns(self) -> bool:
        """True if its errors are sums over a trajectory, whose rows may be in several micro-batches."""
        ...

    def gaps(self, seen: PassPart, batch: TrainingBatch, credit: Tensor | TokenCredit) -> Iterator[Gap]:
        """Its errors in a micro-batch; ``credit`` is what the credit rule gave, before filter and shapes."""
        ...


class HeadErrors:
    """The errors that are sums over trajectories, added up over micro-batches before any is learned from."""

    def __init__(self, trajectories: int) -> None:
        self._trajectories = trajectories
        self._sums: dict[str, tuple[Tensor, Tensor]] = {}

    def add(self, gap: Gap) -> None:
        """Add what a micro-batch has of the sums."""
        if gap.owner_N is None:
            return
        new = self._owned(gap)
        old = self._sums.get(gap.metric)
        self._sums[gap.metric] = new if old is None else (old[0] + new[0], old[1] + new[1])

    def of(self, gap: Gap) -> tuple[Tensor, Tensor]:
        """The error that each place belongs to, and the place's share in it, (N,) both, without gradient.

        Sums are those that were added up, or else this micro-batch's.
        """
        if gap.owner_N is None:
            return gap.gap_N.detach(), torch.ones_like(gap.gap_N)
        sum_B, places_B = self._sums.get(gap.metric) or self._owned(gap)
        return sum_B[gap.owner_N], 1 / places_B[gap.owner_N]

    def _owned(self, gap: Gap) -> tuple[Tensor, Tensor]:
        assert gap.owner_N is not None
        gap_N = gap.gap_N.detach()
        zero_B = gap_N.new_zeros(self._trajectories)
        return zero_B.index_add(0, gap.owner_N, gap_N), zero_B.index_add(
            0, gap.owner_N, torch.ones_like(gap_N)
        )
