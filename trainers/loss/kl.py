"""Divergence from a frozen reference model, estimated at the sampled tokens."""

from typing import Literal

from turnwise.registry import component
from turnwise.trainers.core import TokenBatch, TokenLoss
from turnwise.trainers.kit.minibatch import against_reference
from turnwise.trainers.kit.tokens import token_mean

CAP = 10.0  # of one token's estimate, as in verl


@component(
    "loss",
    "kl",
    objective="KL(π ‖ π_ref), which together with E[R] is best at π ∝ π_ref·exp(R/β)",
    slope="own",
    needs=("reference",),
)
def kl(batch: TokenBatch, *, estimator: Literal["k1", "k2", "k3"] = "k3") -> TokenLoss:
    """A penalty that keeps the policy near the reference.

    With x = log π − log π_ref (clamped to ±20): k1 = x, k2 = x²/2, k3 = exp(−x) + x − 1, each at most 10.
    Schulman, "Approximating KL divergence" (2020), http://joschu.net/blog/kl-approx.html.

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
    """
    mask_RT, x_RT = batch.mask_RT, against_reference(batch, "kl")
    k3_RT = ((-x_RT).exp() + x_RT - 1).clamp(max=CAP)
    half_square_RT = (x_RT**2 / 2).clamp(max=CAP)
    if estimator == "k1":
        loss_RT = half_square_RT + (x_RT.clamp(-CAP, CAP) - half_square_RT).detach()
    else:
        loss_RT = half_square_RT if estimator == "k2" else k3_RT
    return TokenLoss(loss_RT, {"kl_reference": token_mean(k3_RT, mask_RT)})
