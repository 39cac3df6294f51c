"""GPG: scaled up for the groups that taught nothing."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import changed, on_turns


@component(
    "shape",
    "gpg",
    paper="2504.02546",
    bias="biased: scaled by how many groups of the batch were given anything, the trajectory's own among them",
)
def gpg(credit: Tensor | TokenCredit, batch: TurnBatch) -> Tensor | TokenCredit:
    """A times (groups of the batch)/(groups that are given anything).

    A′ = A·M/M′. Chu et al. 2025, over ``dr_grpo``: with groups of equal returns in the batch the step would
    shrink. (verl's version counts non-zero scores instead of usable groups.)

    Worked by hand: [1, 0, 0, 0] and [1, 1, 1, 1]: M/M′ = 2.

    >>> from turnwise.trainers.credit.dr_grpo import dr_grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1], [0], [0], [0], [1], [1], [1], [1]], [0, 0, 0, 0, 1, 1, 1, 1])
    >>> rounded(gpg(dr_grpo(batch), batch))
    [[1.5], [-0.5], [-0.5], [-0.5], [0.0], [0.0], [0.0], [0.0]]
    """
    group_B = batch.group_B
    given_B = (on_turns(credit, batch).abs() > 1e-6).any(-1)
    scale = len(group_B.unique()) / max(len(group_B[given_B].unique()), 1)
    return changed(credit, batch, lambda A: scale * A)
