"""Mean of the policy's log-probabilities over the whole vocabulary, of which ROVER's target is made."""

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
    """The vocabulary is the process's actions."""
    logp_SA = p.logits_SA.detach().log_softmax(-1)
    return {"token_mean_logp": logp_SA.mean(-1)[p.state_NK] * p.mask_NK}


@component("signal", "mean_logp", gives=("token_mean_logp",), reads=("forward pass",), exact=_exact)
def mean_logp(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Reading:
    """The mean of log π over all tokens of the vocabulary at each sampled token's place, before the update, in nats.

    −log V for a policy that is uniform over V tokens, and less for any other.

    >>> from turnwise.trainers.check.teacher import scene
    >>> batch, groups, see = scene()
    >>> "token_mean_logp" in mean_logp(see, batch, groups).done().token
    True
    """
    rows = batch.rows
    found_RT = torch.zeros(rows.mask_RT.shape)

    def read(seen: PassPart) -> None:
        found_RT[seen.index_N, : seen.rows.mask_RT.shape[1]] = seen.mean_logp().cpu()

    return Reading(read, lambda: Measured(token={"token_mean_logp": found_RT}))
