"""How likely the policy finds what it said, by the trainer's own reckoning."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.core import Measured, Reading, SignalContext
from turnwise.trainers.signal.entropy import mean_of_turns


@component("signal", "logp", gives=("logp", "token_logp"), reads=("forward pass",))
def logp(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
    """log π of each sampled token before the update, in nats; ``logp`` is its mean over the tokens of a turn.

    >>> mean_of_turns(torch.tensor([[-1.0, -3.0]]), torch.tensor([[0, 0]]), torch.tensor([0]), (1, 1)).tolist()
    [[-2.0]]
    """
    rows = batch.rows
    logp_RT = torch.zeros(rows.mask_RT.shape)

    def read(seen: PassPart) -> None:
        logp_RT[seen.index_N, : seen.rows.mask_RT.shape[1]] = seen.scores.logp_RT.cpu()

    def done() -> Measured:
        (B, K) = batch.turns.mask_BK.shape
        return Measured(
            {"logp": mean_of_turns(logp_RT, rows.turn_RT, rows.trajectory_R, (B, K))}, {"token_logp": logp_RT}
        )

    return Reading(read, done)
