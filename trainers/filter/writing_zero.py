"""Writing-Zero's filter: groups whose reference nearly all beat, or nearly none, are dropped."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean


@component("filter", "writing_zero", reads=("levels",))
def writing_zero(batch: TurnBatch, credit: Tensor | TokenCredit, *, most: float = 0.6) -> Tensor:
    """Weight 0 for the groups of which |Σ R|/G is above ``most``, 1 for the others; R is the return.

    Writing-Zero, whose R are 1, −1 and 0 against a member drawn by chance (judge `writing_zero`): a large sum says that the draw was
    unusually good or bad, so that the values are not centred. Meant for those R alone: where R is an outcome, it drops the groups that
    solve most, and the expected update is another one (docs/credit-bias.md).

    Worked by hand: R = 0 1 1 −1 −1 −1 −1 1 (.125), five net losses of 8 (.625), all lose (.875).

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> groups = [0, 1, 1, -1, -1, -1, -1, 1], [0, 1, -1, -1, -1, -1, -1, -1], [0, -1, -1, -1, -1, -1, -1, -1]
    >>> batch = turn_batch([[x] for R in groups for x in R], [g for g in range(3) for _ in range(8)])
    >>> writing_zero(batch, batch.reward_BK)[::8].tolist()
    [1.0, 0.0, 0.0]

    Raises:
        RecipeError: ``most`` is below 0.
    """
    if most < 0:
        raise RecipeError(f"filter 'writing_zero': most={most:g} is below 0.", "Give 0 or more (0.6).")
    return (group_mean(batch.return_B, batch.group_B).abs() <= most).to(torch.float32)
