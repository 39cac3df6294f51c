"""HERON's reward model, fitted to comparisons of attempts by ranked factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.factors import FACTORS, MARGIN, compared
from turnwise.trainers.kit.groups import EPS
from turnwise.trainers.kit.stand_in import turns_of, wave
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext, SignalSetup
from turnwise.trainers.signal.implicit import Implicit


@component(
    "signal", "heron", gives=("heron",), needs=("reference",), reads=("copy of the policy", "outcomes"), learns=True,
    stand_in=lambda p: {"heron": wave(p)[:, :1] * turns_of(p)},
)  # fmt: skip
class Heron(Implicit):
    """A reward model's score of each attempt, normalised over the batch, on each of its turns; it learns which attempts are better.

    r_i is the mean over turns of β·Σ log φ/π_ref with φ a copy of the policy, fitted by −log σ(r_i − r_j) over pairs of a group in which i is better
    than j by ``factors`` in their order, each with a margin (see the reward `heron`); ties are left out. Then (r − mean)/deviation, which counts as 1e-6 or more. HERON (hierarchical comparison), whose reward model is trained before reinforcement and has weights of its own; here (ours) it takes its step
    on a batch after it is read. `reward: {name: from_signal, signal: heron, form: last}` pays it beside what is paid otherwise.

    >>> Heron.kind
    'pairs'
    """

    kind = "pairs"
    symbols: ClassVar = {
        "heron": ("ρ", "the score of a reward model that is fitted to comparisons by ranked factors")
    }

    def __init__(
        self,
        setup: SignalSetup,
        *,
        factors: tuple[str, ...] = FACTORS,
        margin: float = MARGIN,
        learning_rate: float = 1e-6,
    ) -> None:
        super().__init__(setup, learning_rate=learning_rate)
        compared("signal 'heron'", (), factors, margin)
        self.factors, self.margin = factors, margin

    def measure(self, see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
        rows, turns = batch.rows, batch.turns
        reference_RT = see.learner.score(rows, reference=True)
        token_RT = self.model.rewards(rows, reference_RT)
        total_B = torch.zeros(len(turns.length_B)).index_add_(0, rows.trajectory_R, token_RT.sum(1))
        score_B = total_B / turns.length_B
        played_P = score_B[turns.length_B > 0]
        normal_B = (score_B - played_P.mean()) / played_P.std(correction=0).clamp(min=EPS)
        loss = self.model.learn(batch, reference_RT, batch.success_B, self._better(groups, len(total_B)))
        told_BK = normal_B[:, None].where(turns.mask_BK, 0.0)
        return Measured({"heron": told_BK}, metrics={"heron_loss": loss})

    def _better(self, groups: Sequence[Group], n: int) -> torch.Tensor:
        """Pairs of trajectories, as they stand in the batch, of which the first is better."""
        better_BB, first = torch.zeros(n, n, dtype=torch.bool), 0
        for group in groups:
            for (i, j), won in compared("signal 'heron'", group, self.factors, self.margin).items():
                better_BB[first + i, first + j] = won == 1
            first += len(group)
        return better_BB
