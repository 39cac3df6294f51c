"""Successes of a group are told apart from its failures, within a trust region."""

import math
from typing import Literal

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import log_ratio, token_mean


@component(
    "loss",
    "disco",
    objective="successes that score above failures of their group, within a bound on KL(π_old ‖ π)",
    paper="2505.12366",
    whole=True,
    slope="own",
)
def disco(
    batch: WholeBatch,
    *,
    score: Literal["logp", "ratio"] = "logp",
    temperature: float = 10.0,
    limit: float = 1e-4,
    penalty: float = 1000.0,
) -> WholeLoss:
    """The score of successes rises above that of failures of the same group, hard failures first.

    s = mean over a trajectory's sampled tokens of log π (``logp``), or of ρ = π/π_old (``ratio``; with temperature 1 in
    the paper). L = −mean over groups of [mean₊ s − τ·log mean₋ exp(s/τ)] + c·KL̂, where mean₊ and mean₋ are over
    successes and failures, τ is ``temperature``, KL̂ = mean over tokens of log π_old − log π, and the constant
    c = penalty·max(0, KL̂ − limit) keeps the step within its limit. DisCO (Li et al. 2025). A group that lacks
    successes or failures gives 0, and counts. Advantages are not used, so that the credit rule matters to the filter
    alone; a trajectory of weight 0 takes no part.

    Metrics: ``disco_margin`` (the mean over groups), ``kl_step`` (KL̂).

    Worked by hand: successes −0.5 and −0.7, failures −0.6, −0.9, −1.2 have a margin of 0.2970 at τ = 10, and a second
    group without success halves the mean. With KL̂ = 0.0005 c is 0.4, which adds 0.0002.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> one = whole_batch([[-0.5], [-0.7], [-0.6], [-0.9], [-1.2]], success=[1, 1, 0, 0, 0])
    >>> two = whole_batch([[-0.5], [-0.7], [-0.6], [-0.9], [-1.2], [-1]], success=[1, 1, 0, 0, 0, 0], group=[0] * 5 + [1])
    >>> [round(disco(batch).loss.item(), 4) for batch in (one, two)]
    [-0.297, -0.1485]
    >>> stale = whole_batch([[-1.0]], old_logp=[[-0.9995]], success=[0])
    >>> round(disco(stale).loss.item(), 6)
    0.0002
    """
    log_ratio_RT = log_ratio(batch)
    count_B, score_B = _scores(batch, log_ratio_RT if score == "ratio" else None)
    here_B, groups = count_B > 0, int(batch.group_B.max()) + 1 if len(batch.group_B) else 0
    margin = batch.logp_RT.sum() * 0
    for group in range(groups):
        member_B = here_B & (batch.group_B == group)
        good_P, bad_N = score_B[member_B & batch.success_B], score_B[member_B & ~batch.success_B]
        if len(good_P) and len(bad_N):
            soft = (bad_N / temperature).logsumexp(0) - math.log(len(bad_N))
            margin = margin + (good_P.mean() - temperature * soft) / groups
    step = -(log_ratio_RT * batch.mask_RT).sum() / batch.mask_RT.sum().clamp(min=1)
    tight = penalty * (step.detach() - limit).clamp(min=0)
    metrics = {"disco_margin": margin.detach(), "kl_step": -token_mean(log_ratio_RT, batch.mask_RT)}
    return WholeLoss(tight * step - margin, metrics)


def _scores(batch: WholeBatch, log_ratio_RT: Tensor | None) -> tuple[Tensor, Tensor]:
    """Of each trajectory: its sampled tokens, and the mean over them of log π, or of the ratio that is given."""
    n = len(batch.group_B)
    value_RT = (batch.logp_RT if log_ratio_RT is None else log_ratio_RT.exp()) * batch.mask_RT
    count_B = torch.zeros(n, dtype=value_RT.dtype).index_add(
        0, batch.trajectory_R, batch.mask_RT.sum(1).to(value_RT.dtype)
    )
    total_B = torch.zeros(n, dtype=value_RT.dtype).index_add(0, batch.trajectory_R, value_RT.sum(1))
    return count_B, total_B / count_B.clamp(min=1)
