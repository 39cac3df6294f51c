"""Log-probabilities that the policy gives to what it said, by the trainer's own reckoning."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.learn.passes import PassPart
from turnwise.trainers.signal.core import Measured, Reading, SignalContext


def _exact(p: ExactProcess) -> dict[str, Tensor]:
    return {"token_logp": p.logp_NK.detach()}


@component("signal", "token_logp", gives=("token_logp",), reads=("forward pass",), exact=_exact)
def token_logp(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
    """log π of each sampled token before the update, in nats.

    >>> from turnwise.trainers.check.teacher import scene
    >>> batch, groups, see = scene()
    >>> "token_logp" in token_logp(see, batch, groups).done().token
    True
    """
    rows = batch.rows
    logp_RT = torch.zeros(rows.mask_RT.shape)

    def read(seen: PassPart) -> None:
        logp_RT[seen.index_N, : seen.rows.mask_RT.shape[1]] = seen.scores.logp_RT.cpu()

    return Reading(read, lambda: Measured(token={"token_logp": logp_RT}))
