"""SEED-GRPO: groups that end in many different places teach less."""

from math import log

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import (
    cells,
    group_mean,
    group_size,
    group_sum,
    last_turn,
    over_turns,
    signal,
)
from turnwise.trainers.kit.token_credit import changed


@component(
    "shape",
    "seed_grpo",
    paper="2505.12346",
    needs=("logp", "tokens"),
    asks=("by",),
    bias="biased: weighted by the group's spread of outcomes, the trajectory's own among them",
)
def seed_grpo(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, alpha: float = 0.0417, by: str | None = None
) -> Tensor | TokenCredit:
    """A, damped by the entropy of what the group ended in.

    A′ = A/(1 + a·SE), SE = −Σ_c p_c ln p_c over clusters c of the group, p_c the summed softmax of its
    members' mean token log-probability, a = α/ln n. Chen et al. 2025 over ``dr_grpo``, linear form; formula and α from a
    re-implementation. A cluster is what shares a number of the signal ``by``, of turns the last one's: with `by: answer` those who said the same
    last, which is nearest to the paper's equal meaning. Without ``by`` (ours, for tasks that end in a state and not in an
    answer) those who acted last in the same state with the same return.

    Worked by hand: mean log-probabilities −0.2, −0.4, −0.3, −0.9, the first two alike: p = 0.5648, 0.2810, 0.1542,
    SE = 0.9676, factor 0.9717; R = 1, 1, 0, 0.

    >>> from turnwise.trainers.credit.dr_grpo import dr_grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> said = {"logp": [[-0.2], [-0.4], [-0.3], [-0.9]], "tokens": [[1]] * 4}
    >>> batch = turn_batch([[1], [1], [0], [0]], states=[[1], [1], [2], [3]], signals=said)
    >>> rounded(seed_grpo(dr_grpo(batch), batch), 4)
    [[0.4859], [0.4859], [-0.4859], [-0.4859]]
    >>> batch = turn_batch([[1], [1], [0], [0]], signals={**said, "answer": [4, 4, 5, 6]})
    >>> rounded(seed_grpo(dr_grpo(batch), batch, by="answer"), 4)
    [[0.4859], [0.4859], [-0.4859], [-0.4859]]
    """
    group_B, mask_BK, R_B = batch.group_B, batch.mask_BK, batch.return_B
    tokens_B = (signal(batch, "tokens") * mask_BK).sum(-1).clamp(min=1)
    mean_logp_B = (signal(batch, "logp") * mask_BK).sum(-1) / tokens_B
    weight_B = (mean_logp_B - group_mean(mean_logp_B, group_B)).exp()
    share_B = weight_B / group_sum(weight_B, group_B)
    cluster_B = cells(group_B, *_ends(batch, by))
    entropy_B = group_sum(-share_B * group_sum(share_B, cluster_B).log(), group_B)
    size_B = group_size(group_B).to(R_B.dtype)
    a_B = torch.where(size_B > 1, alpha / size_B.clamp(min=2).log(), alpha / log(2))
    return changed(credit, batch, torch.mul, over_turns(1 / (1 + a_B * entropy_B), batch))


def _ends(batch: TurnBatch, by: str | None) -> tuple[Tensor, ...]:
    """Return what trajectories of a cluster have in common, each (B,)."""
    if by is not None:
        x = signal(batch, by)
        last_B = (x * last_turn(batch.mask_BK)).sum(-1) if x.dim() == 2 else x
        return (last_B.unique(return_inverse=True)[1],)
    last_B = (batch.state_BK * last_turn(batch.mask_BK)).sum(-1)
    return last_B, batch.return_B.mul(1e6).round().unique(return_inverse=True)[1]
