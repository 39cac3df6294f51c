"""MaxRL: advantages that climb the likelihood of success instead of its probability."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import EPS, group_mean, over_turns


@component(
    "credit",
    "maxrl",
    paper="2602.02710",
    bias="changes the objective: for returns of 0 and 1, to log P(success), truncated",
)
def maxrl(batch: TurnBatch) -> Tensor:
    """Return minus group mean, divided by the group mean: rare successes count for more.

    A_i = (R_i − R̄) / R̄ with R̄ = mean_g R; 0 where R̄ ≤ 0. Tajwar et al. 2026. For returns of 0 and 1
    the expected update is the gradient of −Σ_{k=1}^{n−1} (1 − p)^k / k, the Maclaurin series of log p cut at
    n − 1 terms (one less than the paper's n, because the group without success gives nothing); a test
    holds it to that. Meant for returns ≥ 0.

    Worked by hand: R = [1, 0, 0, 0], R̄ = 1/4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(maxrl(turn_batch([[0, 1], [0], [0], [0]])))
    [[3.0, 3.0], [-1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]
    """
    mean_B = group_mean(batch.return_B, batch.group_B)
    advantage_B = (batch.return_B - mean_B) / mean_B.where(mean_B > EPS, 1.0)
    return over_turns(advantage_B * (mean_B > EPS), batch)
