"""Distance of the policy from the reference where it acted: the price of straying, for rewards that take it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.core import Measured, Reading, SignalContext
from turnwise.trainers.signal.entropy import sum_of_turns


@component(
    "signal", "reference_kl", gives=("reference_kl", "token_reference_kl"), needs=("reference",),
    reads=("forward pass",), paper="1909.08593",
)  # fmt: skip
def reference_kl(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
    """log π − log π_ref of each sampled token, in nats; ``reference_kl`` is its sum over the tokens of a turn.

    Summed over a trajectory it estimates KL(π ‖ π_ref) without bias (k1). Paid with a negative weight it is the KL penalty
    in the reward of Ziegler et al. 2019, eq. 2: ``reward: {name: from_signal, signal: reference_kl, weight: -0.05}``, and
    with ``weight: {towards: …}`` the adaptive one of their §2.2. The best policy for what is left of the reward is
    π ∝ π_ref·exp(R/β).

    >>> sum_of_turns(torch.tensor([[1.0, 3.0, 5.0]]), torch.tensor([[0, 0, 1]]), torch.tensor([0]), (1, 2)).tolist()
    [[4.0, 5.0]]
    """
    rows = batch.rows
    gap_RT = torch.zeros(rows.mask_RT.shape)
    reference_RT = see.learner.score(rows, reference=True)

    def read(seen: PassPart) -> None:
        width = seen.rows.mask_RT.shape[1]
        now_RT = seen.scores.logp_RT.cpu()
        gap_RT[seen.index_N, :width] = (now_RT - reference_RT[seen.index_N, :width]) * seen.rows.mask_RT

    def done() -> Measured:
        (B, K) = batch.turns.mask_BK.shape
        turn_BK = sum_of_turns(gap_RT, rows.turn_RT, rows.trajectory_R, (B, K))
        return Measured({"reference_kl": turn_BK}, {"token_reference_kl": gap_RT})

    return Reading(read, done)
