"""GroundedPRM: what tools said of the turns that follow, and how it ended, backed up along the way."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import signal


@component(
    "credit",
    "grounded",
    paper="2510.14942",
    needs=("valid",),
    bias="biased: pays for turns that the environment accepted, and compares nothing",
)
def grounded(batch: TurnBatch, *, decay: float = 0.9, labels: bool = False, success: float = 1.0) -> Tensor:
    """The mean of what a turn's own simulation and those of the turns after it are worth, each ``decay`` for every turn between.

    A turn with N turns after it is worth V = (1/N)·Σ_{i<N} v_i·(N − i)/N + F/N, v_i = ±1 by whether the environment accepted the i-th of them, F = ±1 by
    whether the return reached ``success``; the last one F. GroundedPRM (Zhang et al. 2025): early checks weigh most. ``labels`` gives the sign, with
    which the paper trains. The signal `validity` checks; an environment that refuses nothing leaves F alone.
    Ours: the episode is the only simulation of each of its turns. Left out: the search that plays more of them, the generative model that is trained on the labels.

    Worked by hand: of four turns the last is refused, and the episode fails. V = 1/9, −1/4, −2, −1; the first turn is
    (1/9 − .9/4 − .81·2 − .729)/4.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> batch = turn_batch([[0, 0, 0, 0]], signals={"valid": [[1, 1, 1, 0]]})
    >>> rounded(grounded(batch), 4)
    [[-0.6157, -0.9533, -1.45, -1.0]]
    >>> rounded(worth(torch.tensor([1.0, 1.0, 1.0, -1.0]), -1.0)[None], 4)
    [[0.1111, -0.25, -2.0, -1.0]]
    >>> rounded(grounded(batch, labels=True), 4)
    [[-1.0, -1.0, -1.0, -1.0]]
    """
    valid_BK = 2.0 * signal(batch, "valid").to(batch.reward_BK.dtype) - 1.0
    end_B = torch.where(batch.return_B >= success - 1e-6, 1.0, -1.0).to(valid_BK.dtype)
    paid_BK = torch.zeros_like(batch.reward_BK)
    for b, n in enumerate(batch.length_B.tolist()):
        total, paid = 0.0, list[float]()
        for after, value in enumerate(reversed(worth(valid_BK[b, :n], float(end_B[b])).tolist()), start=1):
            total = value + decay * total
            paid.append(total / after)
        paid_BK[b, :n] = torch.tensor(paid[::-1], dtype=paid_BK.dtype)
    return paid_BK.sign() if labels else paid_BK


def worth(valid_K: Tensor, end: float) -> Tensor:
    """V of each turn, of the checks (±1) of all and the end (±1)."""
    found, seen = [end], 0.0
    for after, check in enumerate(reversed(valid_K.tolist()[1:]), start=1):
        seen += check * after
        found.append((seen / after + end) / after)
    return torch.tensor(found[::-1][: len(valid_K)], dtype=valid_K.dtype)
