"""BRPO: what a segment of a thought is worth for the answers at all budgets from its end on."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import reverse_cumsum, signal


@component(
    "credit",
    "brpo",
    paper="2505.13438",
    needs=("exit_trunk", "exit_at", "exit_segment"),
    whole_groups=True,
    bias="biased: the policy answers at budgets that it did not choose, and segments have baselines of their own past",
)
def brpo(batch: TurnBatch, *, budgets: Literal["uniform", "linear", "base"] = "linear") -> Tensor:
    """R_s − b_s for the turns of segment s of a whole episode; for those of an answer its return less the mean at this budget.

    AnytimeReasoner (Qi et al. 2025): V_s is the mean return of an episode's answers at budget s of S, R_s = Σ_{t≥s} P_t·V_t, and the
    baseline b_s = (s·v1 + (S − s)·v2)/S goes over from the group's mean v2 of R_s to the episode's own past,
    v1 = Σ_{i<s} 2^i·V_i/Σ_{i<s} 2^i·Σ_{t≥s} P_t. P_t is 1/S (``uniform``), in proportion to t + 1 (``linear``), or 1 at the last
    budget alone (``base``). Groups are those of the guide `anytime`. By an answer's return all that the row earned is meant.

    Worked by hand: four budgets, P = .1, .2, .3, .4; V = 0, 1, 1, 1 and 0, 0, 0, 1.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> whole, asked = [[0, 1, 2, 3]], [[-1], [-1], [-1]]
    >>> places = {"exit_trunk": [[0] * 4, [0], [0], [0], [1] * 4, [1], [1], [1]], "exit_at": [[3] * 4, [0], [1], [2]] * 2}
    >>> batch = turn_batch([[0, 0, 0, 1], [0], [1], [1], [0, 0, 0, 1], [0], [0], [0]], signals={**places, "exit_segment": [*whole, *asked] * 2})
    >>> found = rounded(brpo(batch), 4)
    >>> found[0], found[4]
    ([0.25, 0.4125, 0.1917, 0.0429], [-0.25, -0.0875, 0.125, 0.3])
    """
    trunk_BK, at_BK, segment_BK = (signal(batch, name) for name in ("exit_trunk", "exit_at", "exit_segment"))
    segment_BK = (segment_BK * batch.mask_BK).long()
    played_B = batch.mask_BK.any(1)
    advantage_BK = torch.zeros_like(batch.reward_BK)
    for group in batch.group_B[played_B].unique():
        mine_B = played_B & (batch.group_B == group)
        trunk_M, at_M = trunk_BK[mine_B, 0].unique(return_inverse=True)[1], at_BK[mine_B, 0].long()
        return_M, segment_MK = batch.return_B[mine_B], segment_BK[mine_B]
        value_IS = _values(return_M, trunk_M, at_M)
        worth_IS, S = _advantages(value_IS, budgets), value_IS.shape[1]
        thought_MK = worth_IS[trunk_M[:, None], segment_MK.clamp(max=S - 1)] * (at_M == S - 1)[:, None]
        answer_M = return_M - value_IS[trunk_M, at_M]
        advantage_BK[mine_B] = torch.where(segment_MK < 0, answer_M[:, None], thought_MK)
    return advantage_BK * batch.mask_BK


def _values(return_M: Tensor, trunk_M: Tensor, at_M: Tensor) -> Tensor:
    """The mean return of the answers of each whole episode at each budget, 0 where it was not asked, (I, S)."""
    total_IS = return_M.new_zeros((int(trunk_M.max()) + 1, int(at_M.max()) + 1))
    asked_IS = torch.zeros_like(total_IS)
    total_IS.index_put_((trunk_M, at_M), return_M, accumulate=True)
    asked_IS.index_put_((trunk_M, at_M), torch.ones_like(return_M), accumulate=True)
    return total_IS / asked_IS.clamp(min=1)


def _advantages(value_IS: Tensor, budgets: str) -> Tensor:
    """R_s − b_s of each segment, (I, S)."""
    S = value_IS.shape[1]
    number_S = torch.arange(S, dtype=value_IS.dtype)
    weight_S = {
        "uniform": torch.ones_like(number_S),
        "linear": number_S + 1,
        "base": (number_S == S - 1).to(value_IS.dtype),
    }[budgets]
    chance_IS = (weight_S / weight_S.sum()).expand_as(value_IS)
    to_go_IS = reverse_cumsum(chance_IS * value_IS)
    double_IS = (2**number_S).expand_as(value_IS)
    past_IS = (double_IS * value_IS).cumsum(1) - double_IS * value_IS
    past_IS = past_IS / (double_IS.cumsum(1) - double_IS).clamp(min=1) * reverse_cumsum(chance_IS)
    return to_go_IS - (number_S * past_IS + (S - number_S) * to_go_IS.mean(0)) / S
