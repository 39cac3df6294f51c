"""A-GRAE: easy groups first, hard ones once the policy is good; successes damped until then."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, group_z, over_turns


@component(
    "credit",
    "a_grae",
    paper="2602.05548",
    bias="biased: GRPO's standardisation, reweighted by the batch's own mean return",
)
def a_grae(batch: TurnBatch, *, maturity: float = 1.0) -> Tensor:
    """GRPO's advantage, weighted by how hard the group is and by how far the batch has come.

    p = mean_g R, m = mean of p over the batch's trajectories, A = GRPO's advantage.
    A′ = (1 − m)·0.5A/(1 − √p + 1e-6) + m·0.5A/(√p + 1e-6), and positive A′ are multiplied by
    min(1, m/``maturity``). Yu et al. 2026; as released, where 1 − √p stands although symmetry suggests √(1 − p).
    Meant for returns in [0, 1]; p and m are clamped to that.

    Worked by hand: [1, 0, 0, 0] alone: p = m = 1/4, √p = 1/2, both weights 1, positives × 1/4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(a_grae(turn_batch([[1], [0], [0], [0]])))
    [[0.374999], [-0.499998], [-0.499998], [-0.499998]]
    >>> R = [[1], [0], [0], [0], [1], [1], [1], [0]]
    >>> rounded(a_grae(turn_batch(R, [0, 0, 0, 0, 1, 1, 1, 1])))
    [[0.749997], [-0.499998], [-0.499998], [-0.499998], [0.53867], [0.53867], [0.53867], [-3.232023]]
    """
    R_B, group_B = batch.return_B, batch.group_B
    p_B = group_mean(R_B, group_B).clamp(0, 1)
    m = p_B.mean()
    half_B = 0.5 * group_z(R_B, group_B)
    A_B = (1 - m) * half_B / (1 - p_B.sqrt() + 1e-6) + m * half_B / (p_B.sqrt() + 1e-6)
    return over_turns(A_B.where(A_B <= 0, A_B * (m / maturity).clamp(max=1)), batch)
