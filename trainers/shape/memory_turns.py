"""The weight of what the policy writes for its own later contexts, beside what it does."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.token_credit import changed


@component("shape", "memory_turns", bias="biased: what is written counts otherwise than what is done")
def memory_turns(
    credit: Tensor | TokenCredit, batch: TurnBatch, *, weight: float = 0.0
) -> Tensor | TokenCredit:
    """``weight``·A on turns of kind ``memory``, A on all others; without a context manager that writes, A.

    0 leaves the writing as it was imitated, as trainers do that know summaries as part of the prompt alone: beside it,
    it can be measured what credit of a summary brings. Ours.

    Worked by hand: the second of three turns is a summary.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 0, 1]], memory=[[0, 1, 0]])
    >>> credit = torch.tensor([[1.0, -2.0, 3.0]])
    >>> rounded(memory_turns(credit, batch)), rounded(memory_turns(credit, batch, weight=0.5))
    ([[1.0, 0.0, 3.0]], [[1.0, -1.0, 3.0]])

    Raises:
        RecipeError: the weight would turn signs.
    """
    if weight < 0:
        raise RecipeError(
            f"shape 'memory_turns': weight={weight:g} turns the advantages of what is written around.",
            "Give 0 (nothing is learned of it) or more; 1 changes nothing.",
        )
    if batch.memory_BK is None:
        return credit
    return changed(credit, batch, lambda A, written: torch.where(written, weight * A, A), batch.memory_BK)
