"""Memory of a task's earlier visits in the run."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group, PartState
from turnwise.trainers.kit.groups import group_mean, group_std
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, Signal, SignalContext, SignalSetup


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    told = {"past_visits": 3.0, "past_mean": 0.4, "past_std": 0.45}
    return {name: torch.full_like(p.return_N, x) for name, x in told.items()}


@component(
    "signal",
    "memory",
    gives=("past_visits", "past_mean", "past_std"),
    reads=("rewards", "memory"),
    stand_in=_stand_in,
)
class Memory(Signal):
    """Visits of each trajectory's task in earlier updates, with mean and deviation of its returns (DCPO, eq. 8–9).

    >>> Memory.__mro__[1].__name__
    'Signal'
    """

    def __init__(self, setup: SignalSetup) -> None:
        self._past: dict[str, list[float]] = {}

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        """Told before this batch is added."""
        ids = [group[0].task.id for group in groups]
        known = [self._past.get(name, [0.0, 0.0, 0.0]) for name in ids]
        group_B, return_B = batch.turns.group_B, batch.turns.return_B
        mean_B, std_B = group_mean(return_B, group_B), group_std(return_B, group_B)
        for g, name in enumerate(ids):
            first = int((group_B == g).nonzero()[0])
            n, mean, std = self._past.get(name, [0.0, 0.0, 0.0])
            new, spread = mean_B[first].item(), std_B[first].item()
            square = (n * std**2 + spread**2 + n / (n + 1) * (mean - new) ** 2) / (n + 1)
            self._past[name] = [n + 1, (n * mean + new) / (n + 1), square**0.5]
        told_GX = torch.tensor(known, dtype=torch.float64)
        names = ("past_visits", "past_mean", "past_std")
        return Measured({name: told_GX[group_B, i] for i, name in enumerate(names)})

    def state(self) -> PartState:
        return PartState({name: [*figures] for name, figures in self._past.items()})

    def restore(self, state: PartState) -> None:
        self._past = {name: [float(x) for x in figures] for name, figures in state.numbers.items()}  # pyright: ignore
