"""Success is predicted by how much likelier a trajectory has become than the others of its group."""

import torch

from turnwise.registry import component
from turnwise.trainers.core import WholeBatch, WholeLoss
from turnwise.trainers.kit.minibatch import group_members, trajectory_sum
from turnwise.trainers.kit.tokens import log_ratio


@component(
    "loss",
    "pacs",
    objective="the likelihood of success and failure under the trajectories' own scores",
    paper="2509.02522",
    whole=True,
    slope="own",
)
def pacs(batch: WholeBatch, *, beta: float = 1.0, balanced: bool = True) -> WholeLoss:
    """Cross-entropy of success under σ(ψ), ψ = the trajectory's score less the mean score of the others of its group.

    Score s = β·Σ_t (log π − log π_old) over the sampled tokens. ``balanced``: where a group has both, each class weighs as
    much as the other: n / (2·members of the class). PACS (Li et al. 2025), eq. 7 to 9; the mean is over a group's members
    that are read, then over the minibatch's groups. A trajectory alone has ψ = s. On fresh samples all ψ are 0, and the
    slopes of a group that all failed cancel. Σ grows with turns: choose β smaller where episodes are long. Advantages are
    not used: the credit rule matters to the filter alone.

    Metrics: ``score`` (mean |ψ|), ``accuracy`` (share of trajectories with ψ on the side of what happened; ½ where ψ = 0).

    Worked by hand with Σ = 0.4, −0.2, 0.1 and the first a success: ψ = 0.45, −0.45, 0; weights 1.5, 0.75, 0.75:
    (1.5·0.493249 + 0.75·0.493249 + 0.75·0.693147)/3 = 0.543224; unweighted 0.559882.

    >>> from turnwise.trainers.kit.toy_batches import whole_batch
    >>> batch = whole_batch([[0.4], [-0.2], [0.1]], old_logp=[[0]] * 3, success=[1, 0, 0])
    >>> [round(pacs(batch, balanced=b).loss.item(), 6) for b in (True, False)]
    [0.543224, 0.559882]
    """
    score_B, y_B = beta * trajectory_sum(log_ratio(batch), batch), batch.success_B.to(batch.logp_RT.dtype)
    total, groups, found = batch.logp_RT.sum() * 0, 0, [score_B.new_zeros(0)]
    right = [score_B.new_zeros(0)]
    for member_M in group_members(batch):
        groups += 1
        n, y_M = len(member_M), y_B[member_M]
        if not n:
            continue
        score_M = score_B[member_M]
        psi_M = score_M - (score_M.sum() - score_M) / max(1, n - 1)
        wins = y_M.sum()
        both = balanced and 0 < wins < n
        weight_M = (
            torch.where(y_M > 0, n / (2 * wins), n / (2 * (n - wins))) if both else torch.ones_like(y_M)
        )
        entropy_M = torch.nn.functional.binary_cross_entropy_with_logits(psi_M, y_M, reduction="none")
        total = total + (weight_M * entropy_M).mean()
        found.append(psi_M.detach())
        right.append(0.5 + 0.5 * (2 * y_M - 1) * psi_M.detach().sign())
    seen = max(1, sum(map(len, found)))
    metrics = {"score": torch.cat(found).abs().sum() / seen, "accuracy": torch.cat(right).sum() / seen}
    return WholeLoss(total / max(1, groups), metrics)
