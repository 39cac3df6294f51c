"""TempFlow: turns in which there was much to choose weigh more."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import signal
from turnwise.trainers.kit.token_credit import changed


@component(
    "shape",
    "tempflow",
    paper="2508.04324",
    needs=("entropy",),
    bias="biased: turns weigh by their entropy, relative to that of the trajectory's own other turns",
)
def tempflow(credit: Tensor | TokenCredit, batch: TurnBatch) -> Tensor | TokenCredit:
    """A times how uncertain the policy was at the turn, relative to the trajectory's other turns.

    A′ = w_{i,k}·A, w_{i,k} = H_{i,k} / mean over the turns of i of H; all 1 where the mean is 0. From TempFlow-GRPO (He
    et al. 2025), which weighs the steps of a diffusion by their noise level; the entropy of a turn stands for it
    (ours). Its chance at a single step is the guide `tempflow`.

    Worked by hand: H = 0.2, 0.5, 0.8 weigh 0.4, 1, 1.6; returns 1 and 0 differ by ±1.

    >>> from turnwise.trainers.credit.rloo import rloo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 0, 1], [0]], signals={"entropy": [[0.2, 0.5, 0.8], [0.3]]})
    >>> rounded(tempflow(rloo(batch), batch))
    [[0.4, 1.0, 1.6], [-1.0, 0.0, 0.0]]
    """
    entropy_BK = signal(batch, "entropy") * batch.mask_BK
    mean_B = entropy_BK.sum(-1) / batch.length_B.clamp(min=1)
    sure_B = mean_B < 1e-8
    weight_BK = (entropy_BK / mean_B.masked_fill(sure_B, 1.0)[:, None]).masked_fill(sure_B[:, None], 1.0)
    return changed(credit, batch, torch.mul, weight_BK)
