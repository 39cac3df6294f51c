"""AlphaMath: what lies on a way to a right end is imitated."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import signal


@component(
    "credit",
    "alphamath",
    paper="2405.03553",
    needs=("edge",),
    asks=("trains",),
    shared_turns=True,
    bias="changes the objective: to the likelihood of turns on a way to success in a tree",
)
def alphamath(batch: TurnBatch, *, success: float = 1.0, trains: str = "value") -> Tensor:
    """1 for each turn of an episode that earned ``success`` or more, 0 for the others.

    AlphaMath (Chen et al. 2024) minimises −log π of right solution paths and, of right and wrong ones, (V − Q)², Q by its tree of search: the strategy
    `alphamath`, the loss `nll`, and the signal ``trains``, which this rule has trained and does not look at, `signals: [{name: value, fit: tree_value}]`. A turn
    that several right episodes share is learned once (ours), its 1 divided among them. The paper keeps up to four paths of each kind; here all are learned.

    Worked by hand: two right ends and a wrong one, with one first turn.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> rounded(alphamath(turn_batch([[0, 1], [0, 1], [0, 0]], signals={"edge": [[1, 0], [1, 0], [1, 0]]})))
    [[0.5, 1.0], [0.5, 1.0], [0.0, 0.0]]
    """
    edge_BK = signal(batch, "edge")
    won_B = (batch.return_B >= success - 1e-6).to(batch.reward_BK.dtype)
    peers_BB = batch.group_B[:, None] == batch.group_B
    advantage_BK = torch.zeros_like(batch.reward_BK)
    for k in range(edge_BK.shape[1]):
        shared_BB = peers_BB & (edge_BK[:, k, None] == edge_BK[:, k]) & (edge_BK[:, k] != 0)
        advantage_BK[:, k] = won_B / (shared_BB * won_B).sum(1).clamp(min=1)
    return advantage_BK * batch.mask_BK
