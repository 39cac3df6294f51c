"""Distillation: the policy moves towards a teacher's distribution at the tokens that it sampled itself."""

from __future__ import annotations

import math
from typing import Literal

import torch

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "distill",
    objective="the teacher's distribution, by a divergence from it where the policy acted",
    slope="own",
    paper="2306.13649",
    needs=("token_teacher_logp", "teacher_top"),
)
def distill(
    batch: TokenBatch,
    *,
    beta: float = 0.0,
    divergence: Literal["jensen_shannon", "jeffreys"] = "jensen_shannon",
) -> TokenLoss:
    """Generalised Jensen–Shannon divergence between teacher q and policy π at each sampled token's place.

    β = 0: KL(q ‖ π) = Σ_v q_v·log(q_v/π_v);  β = 1: KL(π ‖ q);  between: β·KL(q ‖ m) + (1 − β)·KL(π ‖ m) with
    m = β·q + (1 − β)·π. Agarwal et al. 2023, eq. 1 and §3 (on-policy GKD, λ = 1). With ``divergence: jeffreys`` it is
    (1 − β)·KL(q ‖ π) + β·KL(π ‖ q): at β = ½ half of Jeffreys' divergence (1946), which unlike Jensen and Shannon's has no
    bound where one of the two rules a token out (our choice of weights). The sum goes over the teacher's likeliest
    tokens (``teacher.top``) and, as one more outcome, all others together (ours; exact with the whole vocabulary).
    Advantages are not looked at; the gradient does not go through what was sampled.

    Metric: ``distill``, the mean divergence, in nats.

    Worked by hand with two tokens, q = (0.75, 0.25), π = (0.5, 0.5): KL(q ‖ π) = 0.75·log 1.5 + 0.25·log 0.5 = 0.130812,
    KL(π ‖ q) = 0.143841; half of Jeffreys' divergence is their mean, 0.137327.

    >>> from math import log
    >>> import dataclasses
    >>> from turnwise.trainers.core import TeacherTop
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> top = TeacherTop(*(torch.tensor([[row]]) for row in ([0, 1], [log(0.75), log(0.25)], [log(0.5), log(0.5)])))
    >>> batch = dataclasses.replace(token_batch([[-1]]), top=top)
    >>> rounded(distill(batch).loss_RT), rounded(distill(batch, beta=1.0).loss_RT)
    ([[0.130812]], [[0.143841]])
    >>> rounded(distill(batch, beta=0.5, divergence="jeffreys").loss_RT)
    [[0.137327]]

    Raises:
        RecipeError: there is no teacher, or beta is not between 0 and 1.
    """
    if batch.top is None or batch.top.logp_RTJ is None:
        raise RecipeError("The loss 'distill' needs a teacher.", "Set the recipe's `teacher`, with `top`.")
    if not 0 <= beta <= 1:
        raise RecipeError(f"loss 'distill': beta={beta} is no mixture.", "Give 0 ≤ beta ≤ 1.")
    q, p = _with_rest(batch.top.teacher_logp_RTJ), _with_rest(batch.top.logp_RTJ)
    if divergence == "jeffreys" or beta in (0.0, 1.0):
        loss_RT = (1 - beta) * _kl(q, p) + beta * _kl(p, q)
    else:
        m = torch.logaddexp(q + math.log(beta), p + math.log(1 - beta))
        loss_RT = beta * _kl(q, m) + (1 - beta) * _kl(p, m)
    loss_RT = loss_RT.masked_fill(~batch.mask_RT, 0.0)
    return TokenLoss(loss_RT, {"distill": token_mean(loss_RT, batch.mask_RT)})


def _kl(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Σ exp(a)·(a − b) over the last axis."""
    return (a.exp() * (a - b)).sum(-1)


def _with_rest(logp_RTJ: torch.Tensor) -> torch.Tensor:
    """With the log-probability of everything else as a last outcome, at least 1e-9."""
    rest_RT = (1 - logp_RTJ.exp().sum(-1)).clamp(min=1e-9)
    return torch.cat([logp_RTJ, rest_RT.log()[..., None]], -1)
