"""Each turn's part in the return, learned in the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group, TokenCredit
from turnwise.trainers.kit.stand_in import wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.heads import Gap
from turnwise.trainers.learn.model import ValueHead
from turnwise.trainers.learn.passes import PassPart, states, turn_ends
from turnwise.trainers.signal.core import Measured, Reading, Signal, SignalContext, SignalSetup


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"progress": 0.5 * p.reward_NK + 0.1 * wave(p)}


@component(
    "signal",
    "progress",
    gives=("progress",),
    reads=("forward pass", "rewards"),
    learns=True,
    stand_in=_stand_in,
)
class Progress(Signal):
    """ĉ_k by a head on the policy's hidden states after each turn, so that they sum to the return (SPA, 2505.20732).

    >>> Progress.objective["progress"]
    'mean (Σ_k ĉ_k − R)²'
    """

    objective: ClassVar = {"progress": "mean (Σ_k ĉ_k − R)²"}
    symbols: ClassVar = {
        "progress": ("ĉ, R", "a learned estimate of turn k's part in the return, and the return")
    }

    sums_over_turns = True

    def __init__(self, setup: SignalSetup) -> None:
        self.module = self._head = ValueHead(setup.width, seed=setup.seed + 1).to(setup.device)

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
        mask_BK, ends_BK = batch.turns.mask_BK, turn_ends(batch)
        progress_BK = torch.zeros(mask_BK.shape)

        def read(seen: PassPart) -> None:
            where_BK, hidden_ND = states(seen.rows, seen.index_N, mask_BK, seen.hidden_RTD, ends_BK)
            progress_BK[where_BK] = self._head(hidden_ND).cpu()

        return Reading(read, lambda: Measured({"progress": progress_BK}))

    def gaps(self, seen: PassPart, batch: TrainingBatch, credit: Tensor | TokenCredit) -> Iterator[Gap]:
        turns, device = batch.turns, seen.hidden_RTD.device
        where_BK, hidden_ND = states(
            seen.rows, seen.index_N, turns.mask_BK, seen.hidden_RTD, turn_ends(batch)
        )
        owner_N = where_BK.nonzero()[:, 0]
        share_N = (turns.return_B / turns.length_B.clamp(min=1))[owner_N].float().to(device)
        # Each turn owes its part of the return, so that a trajectory's gaps sum to Σ ĉ − R.
        yield Gap("progress_error", self._head(hidden_ND) - share_N, "trajectories", owner_N.to(device))
