"""Signals that cost nothing: what the sampled tokens themselves say about each turn."""

from __future__ import annotations

from torch import Tensor

from turnwise.trainers.collate import Batch

SAMPLED = frozenset({"logp", "tokens", "entropy"})
"""What :func:`sampled_signals` measures."""


def sampled_signals(batch: Batch) -> dict[str, Tensor]:
    """Per turn: log-probability of its tokens, how many there are, and their mean surprise, each (B, K).

    Log-probabilities are the engine's, of the distribution that was sampled from. ``entropy`` is the mean
    of −log p over the sampled tokens, in nats: an unbiased estimate of the mean entropy along the turn.
    """
    rows, (B, K) = batch.rows, batch.turns.mask_BK.shape
    mask_RT = rows.mask_RT
    turn_N = (rows.trajectory_R[:, None] * K + rows.turn_RT)[mask_RT]
    logp_N = rows.behaviour_logp_RT[mask_RT]
    logp_BK = logp_N.new_zeros(B * K).index_add_(0, turn_N, logp_N).view(B, K)
    tokens_BK = logp_N.new_zeros(B * K).index_add_(0, turn_N, logp_N.new_ones(len(turn_N))).view(B, K)
    return {"logp": logp_BK, "tokens": tokens_BK, "entropy": -logp_BK / tokens_BK.clamp(min=1)}
