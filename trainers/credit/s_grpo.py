"""S-GRPO: of right answers each is worth half of the one that came before it."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_mean, over_turns


@component(
    "credit",
    "s_grpo",
    paper="2505.07686",
    shared_turns=True,
    bias="biased: right answers are paid by how many of the group's were shorter",
)
def s_grpo(batch: TurnBatch, *, success: float = 1.0) -> Tensor:
    """r − mean of the group: r = 1/2^(k−1) for the k-th right answer of the group by its number of turns, 0 for a wrong one.

    S-GRPO (Dai et al. 2025): no division by the deviation, and no KL. Right is a return of ``success`` or more. Answers of
    equally many turns have one place, that of the first of them: ours. The guide `s_grpo` makes such groups; turns that rows share are learned by
    the advantages of all of them.

    Worked by hand: right are the second, third and fourth of four: r = 0, 1, 1/2, 1/4, whose mean is 0.4375.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> [row[0] for row in rounded(s_grpo(turn_batch([[0], [0, 1], [0, 0, 1], [0, 0, 0, 1]])))]
    [-0.4375, 0.5625, 0.0625, -0.1875]
    """
    right_B = batch.return_B >= success - 1e-6
    together_BB = batch.group_B[:, None] == batch.group_B
    earlier_BB = together_BB & right_B & (batch.length_B < batch.length_B[:, None])
    worth_B = torch.pow(0.5, earlier_BB.sum(1)).to(batch.return_B.dtype) * right_B
    return over_turns(worth_B - group_mean(worth_B, batch.group_B), batch)
