"""What the sampled tokens of a turn say: how many there are, and how likely they were."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext


@component("signal", "sampled", gives=("logp", "tokens"), reads=("tokens",))
def sampled(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """Per turn the sum of its tokens' log-probabilities, in nats, and their number.

    Log-probabilities are the engine's, of the distribution that was sampled from.

    >>> from turnwise.trainers.learn.toy_rows import training_batch
    >>> found = sampled(None, training_batch([[[-1.0, -0.5], [-2.0]]]), [])
    >>> found.turn["logp"].tolist(), found.turn["tokens"].tolist()
    ([[-1.5, -2.0]], [[2.0, 1.0]])
    """
    return Measured(logp_and_tokens(batch))


def logp_and_tokens(batch: TrainingBatch) -> dict[str, Tensor]:
    """The signals by name, (B, K)."""
    rows, (B, K) = batch.rows, batch.turns.mask_BK.shape
    mask_RT = rows.mask_RT
    turn_N = (rows.trajectory_R[:, None] * K + rows.turn_RT)[mask_RT]
    logp_N = rows.behaviour_logp_RT[mask_RT]
    logp_BK = logp_N.new_zeros(B * K).index_add_(0, turn_N, logp_N).view(B, K)
    tokens_BK = logp_N.new_zeros(B * K).index_add_(0, turn_N, logp_N.new_ones(len(turn_N))).view(B, K)
    return {"logp": logp_BK, "tokens": tokens_BK}
