"""Imitation in which a token weighs by the trouble that follows it."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import token_mean


@component(
    "loss",
    "ift",
    objective="the likelihood of demonstrations, each token weighed by the loss that follows from it on",
    paper="2405.11870",
    whole=True,
    slope="own",
)
def ift(batch: WholeBatch, *, discount: float = 0.95) -> WholeLoss:
    """w_t·c_t with c = −log π, S_t = c_t + γ·S_{t+1} over the trajectory, w = n·S/ΣS, which has mean 1; with gradient.

    Intuitive fine-tuning (Hua et al. 2024), eq. 10 to 12, on sampled tokens over all turns; by the reducer's weights, and
    times the advantage's sign where that is not positive it is 0: what is imitated has A > 0. Left out, and half of the method: inputs
    that are mixed with the embedding of the policy's own next token (λ = 0.2 of it), which needs a second forward pass.

    Metric: ``nll`` (mean of −log π, in nats).

    Worked by hand with c = 1, 2, 3: S = 5.6075, 4.85, 3; w = 1.250046, 1.081181, 0.668772; (1.250046 + 2.162363 +
    2.006317)/3 = 1.806242.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> round(ift(whole_batch([[-1, -2, -3]], [[1, 1, 1]])).loss.item(), 5)
    1.80624
    """
    loss = batch.logp_RT.sum() * 0
    for b in range(len(batch.group_B)):
        at_RT = batch.mask_RT & (batch.trajectory_R == b)[:, None]
        row_N, place_N = at_RT.nonzero(as_tuple=True)
        if not len(row_N):
            continue
        width = batch.mask_RT.shape[1]
        order_N = (batch.turn_RT[at_RT] * width + place_N).argsort(stable=True)
        cost_N = -batch.logp_RT[at_RT][order_N]
        n, suffix_N = len(cost_N), _suffix_sums(cost_N, discount)
        weight_N = n * suffix_N / suffix_N.sum().clamp(min=1e-12)
        good_N = batch.advantage_RT[at_RT][order_N] > 0
        loss = loss + (batch.weight_RT[at_RT][order_N] * weight_N * cost_N * good_N).sum()
    return WholeLoss(loss, {"nll": -token_mean(batch.logp_RT, batch.mask_RT)})


def _suffix_sums(x_N: torch.Tensor, discount: float) -> torch.Tensor:
    """S_t = x_t + discount·S_{t+1}, by doubling the number of terms that each sum has."""
    sum_N, reach = x_N, 1
    while reach < len(x_N):
        sum_N = torch.cat([sum_N[:-reach] + discount**reach * sum_N[reach:], sum_N[-reach:]])
        reach *= 2
    return sum_N
