"""GenPRM's filter: an episode counts where labels and critiques agree."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import signal


@component("filter", "genprm", paper="2504.00891", needs=("wrong", "principle"))
def genprm(batch: TurnBatch, credit: Tensor | TokenCredit) -> Tensor:
    """Weight 1 for trajectories of which a label and a critique say the same of every turn, 0 for the others.

    GenPRM (Zhao et al. 2025): labels are `wrong`, by the strategy `relative_progress`; the critiques' score, `principle` of the judge `genprm`, is a yes
    above a half. Theirs drops samples that a process model would be trained on, about half of them.

    Worked by hand: labels right, wrong, right, and three scores, the first of which agrees.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> scores = [[0.9, 0.2, 0.6], [0.9, 0.6, 0.6], [0.9, 0.2, 0.5]]
    >>> batch = turn_batch([[0, 0, 1]] * 3, signals={"wrong": [[0, 1, 0]] * 3, "principle": scores})
    >>> genprm(batch, batch.reward_BK).tolist()
    [1.0, 0.0, 0.0]
    """
    right_BK, yes_BK = signal(batch, "wrong") <= 0.5, signal(batch, "principle") > 0.5
    return ((right_BK == yes_BK) | ~batch.mask_BK).all(1).to(torch.float32)
