"""Writing-Zero's filter: groups whose reference nearly all beat, or nearly none, are dropped."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean, signal


@component("filter", "writing_zero", needs=("against_one",))
def writing_zero(batch: TurnBatch, credit: Tensor | TokenCredit, *, most: float = 0.6) -> Tensor:
    """Weight 0 for the groups of which |Σ R|/G is above ``most``, 1 for the others; R is the signal `against_one`.

    Writing-Zero, whose R are 1, −1 and 0 against a member drawn by chance (judge `writing_zero`): a large sum says that the draw was
    unusually good or bad, so that the values are not centred. Returns are not looked at: groups that solve most are none of its matter.

    Worked by hand: R = 0 1 1 −1 −1 −1 −1 1 (.125), five net losses of 8 (.625), all lose (.875).

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> groups = [0, 1, 1, -1, -1, -1, -1, 1], [0, 1, -1, -1, -1, -1, -1, -1], [0, -1, -1, -1, -1, -1, -1, -1]
    >>> told = {"against_one": [[R] for group in groups for R in group]}
    >>> batch = turn_batch([[1]] * 24, [g for g in range(3) for _ in range(8)], signals=told)
    >>> writing_zero(batch, batch.reward_BK)[::8].tolist()
    [1.0, 0.0, 0.0]

    Raises:
        RecipeError: ``most`` is below 0.
    """
    if most < 0:
        raise RecipeError(f"filter 'writing_zero': most={most:g} is below 0.", "Give 0 or more (0.6).")
    value_B = signal(batch, "against_one")[:, :1].sum(1)  # it is the same on every turn
    return (group_mean(value_B, batch.group_B).abs() <= most).to(torch.float32)
