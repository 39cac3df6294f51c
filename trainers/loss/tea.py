"""A bonus for entropy where advantage and likelihood rise together: where certainty would come too soon."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.tokens import token_mean, unit_mean, unit_sum, units


@component(
    "loss",
    "tea",
    objective="entropy, most where advantage and log-probability go together",
    paper="2508.03178",
    whole=True,
    slope="own",
)
def tea(batch: WholeBatch, *, scale: float = 10.0, cap: float = 5.0) -> WholeLoss:
    """−mean of c_t·H_t, c = clip(scale·softmax over the trajectory of cov, 0, cap), cov = (A_t − Ā)·(log π_t − mean log π).

    Means are of the trajectory; c has no gradient. TEA-RL of Light-IF (2025), §3.3: added to the policy loss, with a
    ``weight`` of the recipe's choice. With one advantage for all of a trajectory cov is 0 and c = scale/n for each of its
    n tokens, a plain bonus: give it a credit rule by turn. By the reducer's weights.

    Metrics: ``bonus`` (mean of c), ``entropy``.

    Worked by hand with A = ½, ½, −1, −1 and log π = −0.1, −0.2, −1.5, −0.1: cov = 0.28125, 0.20625, 0.76875, −0.28125;
    c = 2.4238, 2.2487, 3.9465, 1.3810; with H = 0.2, 0.4, 1.2, 0.3 the mean is 1.6336.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> rows = {"entropy": [[0.2, 0.4, 1.2, 0.3]]}
    >>> round(tea(whole_batch([[-0.1, -0.2, -1.5, -0.1]], [[0.5, 0.5, -1, -1]], **rows)).loss.item(), 4)
    -1.6336
    """
    mask_RT, logp_RT = batch.mask_RT, batch.logp_RT.detach()
    unit_RT, n = units(batch, "trajectory")
    cov_RT = (batch.advantage_RT - unit_mean(batch.advantage_RT, unit_RT, n)) * (
        logp_RT - unit_mean(logp_RT, unit_RT, n)
    )
    power_RT = torch.where(mask_RT, (cov_RT - _greatest(cov_RT, unit_RT, n)).exp(), 0.0)
    share_RT = power_RT / unit_sum(power_RT, unit_RT, n).clamp(min=1e-12)
    bonus_RT = (scale * share_RT).clamp(0, cap) * mask_RT
    loss_RT = -bonus_RT * batch.entropy_RT * mask_RT
    metrics = {"bonus": token_mean(bonus_RT, mask_RT), "entropy": token_mean(batch.entropy_RT, mask_RT)}
    return WholeLoss((batch.weight_RT * loss_RT).sum(), metrics)


def _greatest(x_RT: torch.Tensor, unit_RT: torch.Tensor, n: int) -> torch.Tensor:
    """The largest ``x`` of each token's unit, (R, T)."""
    on_RT = unit_RT >= 0
    most = x_RT.new_full((n,), -torch.inf).scatter_reduce_(0, unit_RT[on_RT], x_RT[on_RT], "amax")
    found_RT = torch.zeros_like(x_RT)
    found_RT[on_RT] = most[unit_RT[on_RT]]
    return found_RT
