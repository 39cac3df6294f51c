"""Differences of returns are regressed on differences of log-likelihoods: the optimum of KL-regularised reward."""

from collections.abc import Iterator

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import against_reference, group_members, mean_over_pairs, trajectory_sum
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio


@component(
    "loss",
    "prdp",
    objective="π ∝ π_ref·exp(R/β), by regression of differences of log-ratios on those of returns",
    paper="2402.08714",
    whole=True,
    slope="own",
    needs=("reference",),
)
def prdp(batch: WholeBatch, *, beta: float = 0.1, proximal: float | None = 0.5) -> WholeLoss:
    """(β·(h_i − h_j) − (R_i − R_j))² over all pairs of a group, h = Σ_t log π − log π_ref of a trajectory.

    It is 0 where π ∝ π_ref·exp(R/β), the best policy for reward less β·KL(π ‖ π_ref). Reward difference prediction (Deng et
    al. 2024), eq. 9; β of the paper is per denoising step, 0.1 is ours. ``proximal``: the larger of this and of the same
    with each h within that many nats of its value at the old policy, so that a pair that has moved far gets no slope further
    out (PRDP, eq. 13). The mean is over pairs of members that are read, then over groups. Advantages are not used. Each token's log π − log π_ref is within ±20.

    Metrics: ``error`` (mean of |β·Δh − ΔR|), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with β = 0.1, h = 0.8 and −0.4, returns 1 and 0: (0.12 − 1)² = 0.7744.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[0.8], [-0.4]], reference_logp=[[0], [0]], success=[1, 0])
    >>> round(prdp(batch).loss.item(), 6)
    0.7744

    Raises:
        RecipeError: there is no reference model.
    """
    now_B = trajectory_sum(against_reference(batch, "prdp"), batch)
    log_ratio_RT = log_ratio(batch)
    moved_B = trajectory_sum(log_ratio_RT, batch)
    near_B = now_B if proximal is None else now_B - moved_B + moved_B.clamp(-proximal, proximal)
    errors: list[Tensor] = [now_B.new_zeros(0)]

    def each() -> Iterator[Tensor]:
        for member_M in group_members(batch):
            i_P, j_P = torch.triu_indices(len(member_M), len(member_M), 1)
            gain_P = _difference(batch.return_B[member_M], i_P, j_P)
            plain_P, clipped_P = (
                (beta * _difference(h_B[member_M], i_P, j_P) - gain_P) ** 2 for h_B in (now_B, near_B)
            )
            errors.append(plain_P.detach().sqrt())
            yield torch.maximum(plain_P, clipped_P)

    loss = mean_over_pairs(batch, each())
    error = torch.cat(errors)
    metrics = {"error": error.sum() / max(1, len(error)), "kl_old": k3_of_old(log_ratio_RT, batch.mask_RT)}
    return WholeLoss(loss, metrics)


def _difference(x_M: Tensor, i_P: Tensor, j_P: Tensor) -> Tensor:
    return x_M[i_P] - x_M[j_P]
