"""A-GRAE: easy groups first, hard ones once the policy is good; successes damped until then."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean, over_turns
from turnwise.trainers.kit.token_credit import changed


@component("shape", "a_grae", paper="2602.05548", bias="biased: reweighted by the batch's own mean return")
def a_grae(credit: Tensor | TokenCredit, batch: TurnBatch, *, maturity: float = 1.0) -> Tensor | TokenCredit:
    """A, weighted by how hard the group is and by how far the batch has come.

    p = mean_g R, m = mean of p over the batch's trajectories.
    A′ = (1 − m)·0.5A/(1 − √p + 1e-6) + m·0.5A/(√p + 1e-6), and positive A′ are multiplied by
    min(1, m/``maturity``). Yu et al. 2026, over GRPO; as released, where 1 − √p stands although symmetry suggests
    √(1 − p). Meant for returns in [0, 1]; p and m are clamped to that.

    Worked by hand: [1, 0, 0, 0] alone: p = m = 1/4, √p = 1/2, both weights 1, positives × 1/4.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1], [0], [0], [0]])
    >>> rounded(a_grae(grpo(batch), batch))
    [[0.374999], [-0.499998], [-0.499998], [-0.499998]]
    >>> batch = turn_batch([[1], [0], [0], [0], [1], [1], [1], [0]], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> rounded(a_grae(grpo(batch), batch))
    [[0.749997], [-0.499998], [-0.499998], [-0.499998], [0.53867], [0.53867], [0.53867], [-3.232023]]
    """
    p_B = group_mean(batch.return_B, batch.group_B).clamp(0, 1)
    m = p_B.mean()
    weight_B = 0.5 * (1 - m) / (1 - p_B.sqrt() + 1e-6) + 0.5 * m / (p_B.sqrt() + 1e-6)
    damped = (m / maturity).clamp(max=1)
    return changed(
        credit, batch, lambda A, weight: A * weight * damped.where(A > 0, 1.0), over_turns(weight_B, batch)
    )
