"""Each ratio is drawn to a target inside its bounds, and drawn back from outside."""

from typing import Literal

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import group_members, of_trajectory
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio, token_mean


@component(
    "loss",
    "bpo",
    objective="the policy of bounded ratio that gains most: π_old·(1 ± bound), by the sign of the advantage",
    whole=True,
    slope="own",
)
def bpo(
    batch: WholeBatch, *, bound: float = 0.2, center: Literal["advantage", "median"] = "advantage"
) -> WholeLoss:
    """|A|·|ρ − (1 + bound·sgn Ã)|: the best policy of bounded ratio has ρ = 1 ± bound by the sign of its advantage.

    ρ = π/π_old. Ã is the advantage itself (BPO), or ``median``: the trajectory's return less the median of its group as
    it was played (GBPO); then one that earned the median is drawn to ρ = 1. Bounded-ratio reinforcement learning (BRRL).
    Unlike under PPO's clip, the slope beyond the bound is not 0: it leads back. With BPO the slope on fresh samples is −A;
    with GBPO it is where Ã and A have one sign. Of an even number of returns the median is the mean of the middle two.
    Left out: the form with a smooth sign.

    Metrics: ``beyond`` (share of tokens past their target), ``kl_old`` (k3 estimate of KL(π_old ‖ π)).

    Worked by hand with A = 1, 0, −1 and ρ = 1.1, 1.3, 0.95: |1.1 − 1.2| = 0.1, 0 and |0.95 − 0.8| = 0.15; their mean is
    0.083333.

    >>> from math import log
    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> rows = {"old_logp": [[0], [0], [0]], "reward": [[0.9], [0.5], [0.1]]}
    >>> batch = whole_batch([[log(1.1)], [log(1.3)], [log(0.95)]], [[1], [0], [-1]], **rows)
    >>> [round(bpo(batch, center=center).loss.item(), 6) for center in ("advantage", "median")]
    [0.083333, 0.083333]
    """
    log_ratio_RT, sign_RT = log_ratio(batch), batch.advantage_RT.sign()
    if center == "median":
        above_B = batch.return_B.clone()
        for member_M in group_members(batch, played=True):
            above_B[member_M] -= batch.return_B[member_M].quantile(0.5)
        sign_RT = of_trajectory(above_B.sign() * (above_B.abs() > 1e-9), batch).expand_as(log_ratio_RT)
    ratio_RT = log_ratio_RT.exp()
    gap_RT = ratio_RT - (1 + bound * sign_RT)
    metrics = {
        "beyond": token_mean(gap_RT * sign_RT > 0, batch.mask_RT),
        "kl_old": k3_of_old(log_ratio_RT, batch.mask_RT),
    }
    loss_RT = batch.advantage_RT.abs() * gap_RT.abs() * batch.mask_RT
    return WholeLoss((batch.weight_RT * loss_RT).sum(), metrics)
