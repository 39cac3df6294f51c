"""Pass@k: credit for what a trajectory adds to the best of its group."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import alone, over_turns


@component(
    "credit",
    "pass_at_k",
    paper="2503.19595",
    bias="changes the objective: to the expected best return of the group, divided by its size",
)
def pass_at_k(batch: TurnBatch) -> Tensor:
    """The best trajectory gets its lead over the second best; all others get nothing.

    A_i = max_j R_j − max_{j≠i} R_j, which is 0 unless i alone is best. Tang et al. 2025. The leave-one-out
    maximum depends on the peers alone, so the expected update is exactly ∇E[max of n returns]/n: pass@n
    for returns of 0 and 1. A group of one gets 0. Left out: verl's division by the standard deviation.

    Worked by hand: R = [1, 0.4, 0]: 1 − 0.4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(pass_at_k(turn_batch([[0, 1], [0.4], [0]])))
    [[0.6, 0.6], [0.0, 0.0], [0.0, 0.0]]
    """
    R_B, group_B = batch.return_B, batch.group_B
    peers_BB = group_B[:, None] == group_B[None, :]
    others_BB = peers_BB & ~torch.eye(len(R_B), dtype=torch.bool, device=R_B.device)
    best_other_B = R_B.expand(len(R_B), -1).masked_fill(~others_BB, -torch.inf).amax(1)
    lead_B = (R_B - best_other_B).clamp(min=0)
    return over_turns(lead_B.masked_fill(alone(group_B), 0.0), batch)
