"""RLPR: how far the rewards of a group must be apart to teach, by how far groups were apart before."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

import torch

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group, PartState
from turnwise.trainers.kit.groups import group_std
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup


def _stand_in(p: ExactProcess) -> dict[str, torch.Tensor]:
    return {"spread_floor": 0.05 * turns_of(p)}


@component(
    "signal", "spread_floor", paper="2506.18254", gives=("spread_floor",), reads=("rewards", "memory"), stand_in=_stand_in,
)  # fmt: skip
class SpreadFloor(Signal):
    """``share`` times the moving average of the groups' deviations, on every turn; 0 before update ``filters_from``.

    e ← ``decay``·e + (1 − decay)·s with s the mean of the groups' sample deviations of returns in this update, from update
    ``averages_from`` on, whose own s is the first e (ours). Updates count from 1. With the filter `rlpr` it is RLPR's filter (Yu et
    al. 2025): a fixed bound would drop all groups as the policy becomes sure.

    Worked by hand: e = .2 and s = .1 are .99·.2 + .01·.1 = .199, of which half is .0995.

    >>> floor = SpreadFloor(None, averages_from=1, filters_from=2)
    >>> floor.average(0.2), round(floor.average(0.1), 6)
    (0.0, 0.0995)

    Raises:
        RecipeError: a share or the decay lies outside of 0 and 1.
    """

    def __init__(
        self,
        setup: SignalSetup,
        *,
        share: float = 0.5,
        decay: float = 0.99,
        averages_from: int = 6,
        filters_from: int = 11,
    ) -> None:
        if not (0 <= share <= 1 and 0 <= decay <= 1):
            raise RecipeError(
                f"signal 'spread_floor': share={share:g} and decay={decay:g} must lie between 0 and 1.",
                "RLPR's are share 0.5 and decay 0.99.",
            )
        self.share, self.decay = share, decay
        self.averages_from, self.filters_from = averages_from, filters_from
        self.updates = 0
        self.mean: float | None = None

    def average(self, spread: float) -> float:
        """Take up the spread of an update; return the floor."""
        self.updates += 1
        if self.updates >= self.averages_from:
            before = spread if self.mean is None else self.mean
            self.mean = self.decay * before + (1 - self.decay) * spread
        return self.share * self.mean if self.mean is not None and self.updates >= self.filters_from else 0.0

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        turns = batch.turns
        of_groups: dict[int, float] = {}
        for g, s in zip(
            turns.group_B.tolist(), group_std(turns.return_B, turns.group_B).tolist(), strict=True
        ):
            of_groups[g] = s
        floor = self.average(mean([*of_groups.values()] or [0.0]))
        return Measured({"spread_floor": floor * turns.mask_BK.to(torch.float64)})

    def state(self) -> PartState:
        return PartState({"updates": self.updates, "mean": self.mean})

    def restore(self, state: PartState) -> None:
        self.updates, self.mean = state.numbers["updates"], state.numbers["mean"]  # pyright: ignore
