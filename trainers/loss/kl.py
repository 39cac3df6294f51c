"""Divergence from a frozen reference model, estimated at the sampled tokens."""

from __future__ import annotations

import math
from typing import Literal

from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.tokens import token_mean

K2_REACH = math.sqrt(20)  # where ½x² is 10
K3_REACH = 2.610868638149876  # where e^x − x − 1 is 10


def k2(x_RT: Tensor) -> Tensor:
    """½x², and beyond 10 nats, where abs(x) is √20, its tangent: the slope stays at ±√20, however far x is.

    >>> import torch
    >>> [round(float(k2(torch.tensor(x))), 4) for x in (-2.0, 6.0)]  # 10 + √20·(6 − √20)
    [2.0, 16.8328]
    """
    near_RT = x_RT.clamp(-K2_REACH, K2_REACH)
    return near_RT**2 / 2 + K2_REACH * (x_RT - near_RT).abs()


def k3(x_RT: Tensor) -> Tensor:
    """e^−x + x − 1, and for x below −2.61, where it is 10 nats, its tangent, whose slope is −12.61.

    >>> import torch
    >>> [round(float(k3(torch.tensor(x))), 4) for x in (-4.0, 12.0)]  # 10 + 12.6109·(4 − 2.6109)
    [27.5182, 11.0]
    """
    near_RT = x_RT.clamp(min=-K3_REACH)
    return (-near_RT).exp() + near_RT - 1 + (math.exp(K3_REACH) - 1) * (near_RT - x_RT)


@component(
    "loss",
    "kl",
    objective="KL(π ‖ π_ref), which together with E[R] is best at π ∝ π_ref·exp(R/β)",
    slope="own",
    needs=("reference",),
)
def kl(batch: TokenBatch, *, estimator: Literal["k1", "k2", "k3"] = "k3") -> TokenLoss:
    """A penalty that keeps the policy near the reference.

    With x = log π − log π_ref: k1 = x, k2 = x²/2, k3 = exp(−x) + x − 1. Schulman, "Approximating KL
    divergence" (2020), http://joschu.net/blog/kl-approx.html. Where k2 or k3 grows beyond 10 nats it goes on
    along its tangent (:func:`k2`, :func:`k3`; ours), so that a token as far off as that is still drawn back,
    with a bounded slope. verl clamps the estimate to ±10 instead, beyond which it has no slope.

    What is descended differs from what is estimated: all three *estimate* KL(π ‖ π_ref) (k2 roughly), but
    E_π[∇k2] = ∇KL(π ‖ π_ref), E_π[∇k3] = ∇KL(π_ref ‖ π), and E_π[∇k1] = 0. So ``k1`` reports k1 and
    descends along k2, since its own gradient would be noise. A test holds the three to this.
    Left out: the correction for tokens sampled by an older policy.

    Worked by hand with π = 0.8·π_ref, x = log 0.8 = −0.223144:

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import rounded, token_batch
    >>> batch = token_batch([[log(0.4)]], reference_logp=[[log(0.5)]])
    >>> [rounded(kl(batch, estimator=k).loss_RT) for k in ("k1", "k2", "k3")]
    [[[-0.223144]], [[0.024897]], [[0.026856]]]

    Raises:
        RecipeError: there is no reference model.
    """
    if batch.reference_logp_RT is None:
        raise RecipeError(
            "The loss 'kl' needs a reference model.",
            "Train by a recipe, whose trainer loads one, or give the batch reference_logp_RT.",
        )
    x_RT = (batch.logp_RT - batch.reference_logp_RT).masked_fill(~batch.mask_RT, 0.0)
    if estimator == "k1":
        loss_RT = k2(x_RT) + (x_RT - k2(x_RT)).detach()
    else:
        loss_RT = k2(x_RT) if estimator == "k2" else k3(x_RT)
    return TokenLoss(loss_RT, {"kl_reference": token_mean(k3(x_RT), batch.mask_RT)})
