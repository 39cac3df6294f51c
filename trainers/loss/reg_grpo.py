"""Regression: how much likelier a trajectory has become shall be as its advantage, both in standard deviations."""

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import group_members, trajectory_sum
from turnwise.trainers.kit.tokens import k3_of_old, log_ratio

EPS = 1e-6  # beside the deviation of returns, as in GRPO


@component(
    "loss",
    "reg_grpo",
    objective="standardised returns of a group, regressed on by its standardised log-ratios",
    paper="2506.07464",
    whole=True,
    slope="own",
)
def reg_grpo(batch: WholeBatch, *, guard: float = 0.1) -> WholeLoss:
    """(A − Â)²: A is the group's standardised return, Â the group's standardised Σ_t (log π − log π_old).

    A = (R − mean)/(std + 1e-6);  Â = (ρ − mean ρ)/√(var ρ + guard²), ρ the sum over a trajectory's sampled tokens; sample
    variances, over a group's members that are read; the mean is over them, then over the minibatch's groups. Reg-GRPO of
    DeepVideo-R1 (Park et al. 2025). On fresh samples all ρ are equal and a plain standard deviation is 0: ``guard`` is ours,
    and so is that fewer than two members, or equal returns, give 0. Add the loss `kl` for the paper's penalty. Advantages
    of the credit rule are not used. Left out, and half of the paper: augmentation by difficulty (a hint where a task has become harder
    than of late, noise where easier).

    Metrics: ``fit`` (correlation of A and Â over the groups, 1 is the best), ``kl_old``.

    Worked by hand with returns 1, 0, 0, 0 and ρ = 0.05, −0.05, 0, 0: A = 1.5, −0.5, −0.5, −0.5, Â = 1.224745, −1.224745,
    0, 0 for a small guard: (0.275255² + 0.724745² + 2·0.25)/4 = 0.275255.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[0.05], [-0.05], [0], [0]], old_logp=[[0]] * 4, success=[1, 0, 0, 0])
    >>> round(reg_grpo(batch, guard=1e-6).loss.item(), 5)
    0.27525
    """
    log_ratio_RT = log_ratio(batch)
    rho_B = trajectory_sum(log_ratio_RT, batch)
    total, groups, both = batch.logp_RT.sum() * 0, 0, batch.logp_RT.new_zeros(3)
    for member_M in group_members(batch):
        groups += 1
        return_M, rho_M = batch.return_B[member_M], rho_B[member_M]
        if len(member_M) < 2 or float(return_M.max() - return_M.min()) < 1e-9:
            continue
        aim_M = (return_M - return_M.mean()) / (return_M.std() + EPS)
        found_M = (rho_M - rho_M.mean()) / (rho_M.var() + guard**2).sqrt()
        total = total + ((aim_M - found_M) ** 2).mean()
        seen_M = found_M.detach()
        both += both.new_tensor([(aim_M * seen_M).sum(), (aim_M**2).sum(), (seen_M**2).sum()])
    fit = both[0] / (both[1] * both[2]).sqrt().clamp(min=1e-12)
    return WholeLoss(total / max(1, groups), {"fit": fit, "kl_old": k3_of_old(log_ratio_RT, batch.mask_RT)})
