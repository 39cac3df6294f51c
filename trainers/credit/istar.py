"""iStar: outcomes, plus implicit rewards of single turns, each against the rest of the group."""

from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import (
    alone,
    cells,
    over_cells,
    over_turns,
    peers_mean,
    reverse_cumsum,
    signal,
)


@component(
    "credit",
    "istar",
    paper="2509.19199",
    needs=("implicit",),
    bias="biased: adds implicit rewards, scaled over the batch, whose baseline contains the own other turns",
)
def istar(batch: TurnBatch, *, weight: float = 1.0) -> Tensor:
    """RLOO on the returns plus RLOO on the implicit rewards of all turns of the group.

    ``implicit`` is β Σ_tokens (log π_φ − log π_old), the reward that a preference-trained copy φ of the policy
    implies. r = implicit / (max over the batch of |Σ_{l≥k} implicit_l| + 1e-6);
    A_{i,k} = (R_i − mean of peers' R) + ω·(r_{i,k} − mean of the group's other turns' r). Liu et al. 2025.

    Left out: the released code's baseline, which sees only first turns; the training of φ (a signal).

    Worked by hand: implicit 0.005, 0.02 | −0.01, 0.01: largest sum 0.025, r = 0.2, 0.8 | −0.4, 0.4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 1], [0, 0]], signals={"implicit": [[0.005, 0.02], [-0.01, 0.01]]})
    >>> rounded(istar(batch))
    [[0.933336, 1.733304], [-1.866632, -0.800008]]
    """
    mask_BK = batch.mask_BK
    implicit_BK = signal(batch, "implicit") * mask_BK
    largest = (reverse_cumsum(implicit_BK) * mask_BK).abs().amax() if mask_BK.any() else 0.0
    reward_BK = implicit_BK / (largest + 1e-6)
    group_BK = cells(batch.group_B[:, None].expand_as(mask_BK))
    step_BK = (reward_BK - over_cells(peers_mean, reward_BK, group_BK, mask_BK)) * mask_BK
    outcome_B = batch.return_B - peers_mean(batch.return_B, batch.group_B)
    lonely_B = alone(batch.group_B)
    outcome_BK = over_turns(outcome_B.masked_fill(lonely_B, 0.0), batch)
    return outcome_BK + weight * step_BK.masked_fill(lonely_B[:, None], 0.0)
