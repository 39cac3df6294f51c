"""Confidence of the reasoning: how likely the tokens of a turn's thoughts were, apart from what was done."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import ExactProcess, Group
from turnwise.trainers.kit.stand_in import turns_of
from turnwise.trainers.learn.collate import TrainingBatch
from turnwise.trainers.signal.core import Measured, SignalContext
from turnwise.trainers.signal.forced import thought_mask
from turnwise.trainers.signal.sampled import require_known


def _stand_in(p: ExactProcess) -> dict[str, Tensor]:
    return {"thought_logp": p.logp_NK.detach(), "thought_tokens": turns_of(p)}


@component(
    "signal",
    "thought_logp",
    gives=("thought_logp", "thought_tokens"),
    reads=("tokens",),
    stand_in=_stand_in,
)
def thought_logp(see: SignalContext, batch: TrainingBatch, groups: Sequence[Group]) -> Measured:
    """Per turn the sum of the log-probabilities of its thoughts' tokens, in nats, and their number; 0 and 0 without thoughts.

    Log-probabilities are the engine's, of the distribution that was sampled from; the tag that closes a thought is part of it.

    >>> from turnwise.trainers.learn.toy_rows import training_batch
    >>> class See:
    ...     class tokenizer:
    ...         decode = staticmethod(lambda ids: "".join({2: "<think>", 3: "</think>", 4: "go"}[x] for x in ids))
    >>> found = thought_logp(See, training_batch([[[-1.0, -0.5, -2.0]]]), [])
    >>> found.turn["thought_logp"].tolist(), found.turn["thought_tokens"].tolist()
    ([[-1.5]], [[2.0]])
    """
    require_known(batch)
    rows, (B, K) = batch.rows, batch.turns.mask_BK.shape
    thought_RT = thought_mask(batch, see.tokenizer.decode)
    turn_N = (rows.trajectory_R[:, None] * K + rows.turn_RT)[thought_RT]
    logp_N = rows.behaviour_logp_RT[thought_RT]
    logp_BK = logp_N.new_zeros(B * K).index_add_(0, turn_N, logp_N).view(B, K)
    tokens_BK = logp_N.new_zeros(B * K).index_add_(0, turn_N, logp_N.new_ones(len(turn_N))).view(B, K)
    return Measured({"thought_logp": logp_BK, "thought_tokens": tokens_BK})
