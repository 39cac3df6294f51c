"""PURE: a trajectory is worth its worst turn."""

from typing import Literal

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, group_sum, over_turns, peers_mean, reverse_cumsum
from turnwise.trainers.kit.groups import signal as measured
from turnwise.trainers.kit.token_credit import tokens_of


@component(
    "credit",
    "pure",
    paper="2504.15275",
    asks=("signal",),
    bias="biased: it climbs (nearly) the smallest reward instead of the sum, with a baseline per turn left",
)
def pure(
    batch: TurnBatch,
    *,
    temperature: float = 0.1,
    signal: str = "",
    baseline: Literal["turn", "token"] = "turn",
) -> Tensor:
    """Min-form credit: turns up to the worst one get its score, later ones hardly anything.

    w = softmax_k(−p_k/T), r*_k = w_k·p_k (their sum is nearly min p);  A_{i,k} = Σ_{l≥k} (r*_{i,l} − b_{i,l}). With the baseline
    ``turn`` b is the mean over peers of (Σ r* / number of turns); with ``token``, the paper's default, the turn's number of tokens
    times (Σ r* of all peers / their number of tokens). Cheng et al. 2025.

    The scores p are a process judge's, which as a sum invite filler steps. Name its signal, as in `judge: principles` with
    `credit: {name: pure, signal: principle}`: what was paid is then the verifier's reward, and each turn gets the return less
    the mean of the peers' returns beside. Without ``signal`` every turn's reward is taken as a score, and there is no verifier:
    an outcome that is paid would drown among the scores.

    Worked by hand for [0.9, −0.8, 0.5]: r* = [0, −0.8, 0], and the other's Σ r*/3 = 0.278:
    −0.8 − 3·0.278, −0.8 − 2·0.278, 0 − 0.278.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(pure(turn_batch([[0.9, -0.8, 0.5], [0.9, 0.8, 0.85]])))
    [[-1.633989, -1.355992, -0.277996], [1.633989, 1.199632, 0.527782]]

    As scores beside outcomes of −1 and 0, the verifier's advantages are −1 and 1:

    >>> scores = {"principle": [[0.9, -0.8, 0.5], [0.9, 0.8, 0.85]]}
    >>> rounded(pure(turn_batch([[0, 0, -1], [0, 0, 0]], signals=scores), signal="principle"), 4)
    [[-2.634, -2.356, -1.278], [2.634, 2.1996, 1.5278]]
    """
    mask_BK = batch.mask_BK
    score_BK = measured(batch, signal) if signal else batch.reward_BK
    weight_BK = (-score_BK / temperature).masked_fill(~mask_BK, -torch.inf).softmax(-1)
    least_BK = weight_BK.nan_to_num() * score_BK  # no turns: softmax of nothing
    if baseline == "turn":
        pace_B = peers_mean(least_BK.sum(-1) / batch.length_B.clamp(min=1), batch.group_B)
        baseline_BK = over_turns(pace_B, batch)
    else:
        size_BK = _tokens_of_turns(batch)
        total_B, size_B = least_BK.sum(-1), size_BK.sum(-1)
        others_B = group_sum(size_B, batch.group_B) - size_B
        pace_B = (group_sum(total_B, batch.group_B) - total_B) / others_B.clamp(min=1)
        baseline_BK = pace_B[:, None] * size_BK
    advantage_BK = reverse_cumsum((least_BK - baseline_BK) * mask_BK) * mask_BK
    if signal:
        verified_B = batch.return_B - peers_mean(batch.return_B, batch.group_B)
        advantage_BK = advantage_BK + over_turns(verified_B, batch)
    return advantage_BK.masked_fill(alone(batch.group_B)[:, None], 0.0)


def _tokens_of_turns(batch: TurnBatch) -> Tensor:
    """Count the tokens that were sampled in each turn, (B, K)."""
    tokens, (B, K) = tokens_of(batch), batch.mask_BK.shape
    at_N = (tokens.trajectory_R[:, None] * K + tokens.turn_RT)[tokens.mask_RT]
    count = batch.reward_BK.new_zeros(B * K)
    return count.index_add_(0, at_N, count.new_ones(len(at_N))).view(B, K)
