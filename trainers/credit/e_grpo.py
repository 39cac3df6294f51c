"""E-GRPO: a failure that came across what was asked for is a near miss."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import EPS, group_z, over_turns, signal


@component(
    "credit",
    "e_grpo",
    paper="2510.24694",
    needs=("matched",),
    bias="biased: GRPO on returns that pay failures for what they mention",
)
def e_grpo(batch: TurnBatch, *, alpha: float = 0.3, success: float = 1.0) -> Tensor:
    """GRPO, after failures are paid α times the share of the gold entities that they matched.

    R'_i = 1 where R_i ≥ ``success``, else α·γ_i/max_g γ (0 where nobody matched anything). Zhao et al. 2025, eq. 5.
    ``matched`` is γ, the share of the entities of the gold solution that the agent names. Left out: the exclusion of
    over-long rollouts from the loss; the environment's reward for a failure is replaced.

    Worked by hand: matches 3/4 (solved), 1/4, 2/4, 0: R' = 1, 0.1, 0.2, 0.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> matched = {"matched": [[0.75], [0.25], [0.5], [0.0]]}
    >>> rounded(e_grpo(turn_batch([[1], [0], [0], [0]], signals=matched)), 4)
    [[1.4759], [-0.492], [-0.2733], [-0.7106]]
    """
    matched_B = (signal(batch, "matched") * batch.mask_BK).amax(1) if batch.mask_BK.any() else batch.return_B
    most_B = matched_B.new_zeros(len(matched_B))
    for group in batch.group_B.unique():
        mine_B = batch.group_B == group
        most_B[mine_B] = matched_B[mine_B].max()
    near_B = alpha * matched_B / most_B.clamp(min=EPS)
    paid_B = near_B.masked_fill(batch.return_B >= success - 1e-6, 1.0)
    return over_turns(group_z(paid_B, batch.group_B), batch)
