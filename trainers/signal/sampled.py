"""Figures of the sampled tokens of a turn: how many there are, and how likely they were."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from turnwise.errors import RunError
from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext


def _exact(p: ExactProcess) -> dict[str, Tensor]:
    return {"logp": p.logp_NK.detach(), "tokens": turns_of(p)}


@component("signal", "sampled", gives=("logp", "tokens"), reads=("tokens",), exact=_exact)
def sampled(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """Per turn the sum of its tokens' log-probabilities, in nats, and their number.

    Log-probabilities are the engine's, of the distribution that was sampled from.

    >>> from turnwise.trainers.learn.toy_rows import training_batch
    >>> found = sampled(None, training_batch([[[-1.0, -0.5], [-2.0]]]), [])
    >>> found.turn["logp"].tolist(), found.turn["tokens"].tolist()
    ([[-1.5, -2.0]], [[2.0, 1.0]])
    """
    return Measured(logp_and_tokens(batch))


def require_known(batch: TrainingBatch) -> None:
    """Refuse tokens of which nobody knows how likely they were.

    Raises:
        RunError: a source that samples nothing chose them.
    """
    unknown_RT = batch.rows.mask_RT & ~batch.rows.known_RT
    if bool(unknown_RT.any()):
        who = sorted({batch.sources[i - 1] for i in batch.rows.source_RT[unknown_RT].tolist() if i})
        raise RunError(
            "A signal asks for the log-probabilities with which tokens were sampled, and those of "
            f"{', '.join(who) or 'some episodes'} are unknown: nobody sampled them.",
            "Take a credit rule without `logp`, or let this source join no groups.",
        )


def logp_and_tokens(batch: TrainingBatch) -> dict[str, Tensor]:
    """The signals by name, (B, K)."""
    rows, (B, K) = batch.rows, batch.turns.mask_BK.shape
    mask_RT = rows.mask_RT
    require_known(batch)
    turn_N = (rows.trajectory_R[:, None] * K + rows.turn_RT)[mask_RT]
    logp_N = rows.behaviour_logp_RT[mask_RT]
    logp_BK = logp_N.new_zeros(B * K).index_add_(0, turn_N, logp_N).view(B, K)
    tokens_BK = logp_N.new_zeros(B * K).index_add_(0, turn_N, logp_N.new_ones(len(turn_N))).view(B, K)
    return {"logp": logp_BK, "tokens": tokens_BK}
