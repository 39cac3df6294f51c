"""EAR: the advantages of confident trajectories weigh more."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import group_mean, over_turns, signal
from turnwise.trainers.kit.token_credit import changed


@component(
    "shape",
    "ear",
    paper="2508.11356",
    needs=("entropy",),
    shared_turns=True,
    bias="biased: weighted by the trajectory's own entropy",
)
def ear(credit: Tensor | TokenCredit, batch: TurnBatch, *, cap: float = 2.0) -> Tensor | TokenCredit:
    """A times 1 + (H̄ − H_i)/H̄, where H_i is the trajectory's entropy and H̄ the group's.

    A′ = clip(A·f_i, ±``cap``), f_i = 1 + (H̄ − H_i)/H̄ in [0, 2], 1 where H̄ = 0. Entropy-based advantage
    reshaping of ETTRL (Liu et al. 2025), there over GRPO. Ours: H_i is the mean over turns, and f is bounded. Where A
    differs within a trajectory each turn or token is weighted and cut for itself. Turns that episodes of a tree share (ETMR, which is
    `rollout.strategy: {name: tree, at: entropy}`) are learned by the advantages of all of them, as in the paper.

    Worked by hand: H = 0.2, 0.4, 0.6: f = 1.5, 1, 0.5; A of R = 1, 0, 0: 1.1547, −0.57735, −0.57735.

    >>> from turnwise.trainers.credit.grpo import grpo
    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[1], [0], [0]], signals={"entropy": [[0.2], [0.4], [0.6]]})
    >>> rounded(ear(grpo(batch), batch))
    [[1.732048], [-0.577349], [-0.288675]]
    """
    entropy_B = (signal(batch, "entropy") * batch.mask_BK).sum(-1) / batch.length_B.clamp(min=1)
    mean_B = group_mean(entropy_B, batch.group_B)
    factor_B = torch.where(mean_B > 1e-8, 2 - entropy_B / mean_B.clamp(min=1e-8), 1.0).clamp(0, 2)
    return changed(
        credit, batch, lambda A, factor: (A * factor).clamp(-cap, cap), over_turns(factor_B, batch)
    )
