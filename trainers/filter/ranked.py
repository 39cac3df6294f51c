"""Of each group some trajectories are trained on, by their rank."""

from typing import Literal

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch


@component("filter", "ranked", paper="2409.06957")
def ranked(
    batch: TurnBatch,
    credit: Tensor | TokenCredit,
    *,
    keep: Literal["best", "best_worst", "power"] = "best_worst",
    power: float = 2.0,
) -> Tensor:
    """``best``: the trajectory with the highest return of its group; ``best_worst``: and the one with the lowest;
    ``power``: each with weight |R|^power, of mean 1 over the group. Equal returns (up to 1e-9) share the weight.

    PF-PPO (Shen et al. 2024): where rewards are judged and not verified, extremes are more reliable than the middle. The
    weights of a group sum to 1, 2 or its size; with ``best_worst`` equal returns, and with ``power`` returns of 0, weigh 1 each. Statistics of the credit rule and denominators are of all that was played.
    No rule stays what it was (docs/recipe-bias.md). With ``best_worst`` a group of equal returns weighs its size and a mixed one 2, so
    that those who learn from groups in which all failed (`ngrpo`, `psr_nsr`, a learned baseline) see more of these.
    Ours: a weight for each trajectory, where the paper draws from them with replacement. Left out: the
    paper's rule BR, and its choice of the rule by how well rewards are predicted. With ``best``, the loss `nll` and an advantage of 1 for all it is
    imitation of the best of n (RAFT, SuperHF): `credit: {name: psr_nsr, positive: 1, negative: 0, success: -1e9}`.

    Worked by hand with returns 0.1, 0.9, 0.4, 0.2: squares 0.01, 0.81, 0.16, 0.04 of 1.02, times 4.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> batch, none = turn_batch([[0.1], [0.9], [0.4], [0.2]]), torch.zeros(4, 1)
    >>> [ranked(batch, none, keep=keep).tolist() for keep in ("best", "best_worst")]
    [[0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]]
    >>> [round(x, 4) for x in ranked(batch, none, keep="power").tolist()]
    [0.0392, 3.1765, 0.6275, 0.1569]

    Raises:
        RecipeError: ``power`` is not above 0.
    """
    if power <= 0:
        raise RecipeError(f"filter 'ranked': power={power} prefers what earned nothing.", "Give it above 0.")
    return_B, weight_B = batch.return_B, torch.zeros(len(batch.group_B), dtype=torch.float64)
    for group in batch.group_B.unique():
        member_M = (batch.group_B == group).nonzero()[:, 0]
        return_M = return_B[member_M].double()
        if keep == "power":
            size_M = (return_M.abs() / return_M.abs().max().clamp(min=1e-30)) ** power
            total = size_M.sum()
            weight_B[member_M] = len(member_M) * size_M / total if total > 0 else torch.ones_like(size_M)
            continue
        top_M, low_M = (return_M >= return_M.max() - 1e-9), (return_M <= return_M.min() + 1e-9)
        weight_B[member_M] = top_M / top_M.sum().double()
        if keep == "best_worst":
            both_M = top_M / top_M.sum().double() + low_M / low_M.sum().double()
            weight_B[member_M] = torch.ones_like(both_M) if bool(top_M.all()) else both_M
    return weight_B.float()
