"""DRO's filter: groups in which no token of the right answer depends on the reasoning are dropped, and those in which it hardly matters."""

from math import floor

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import signal


@component("filter", "r3", paper="2506.13351", needs=("r3_spread",), asks=("rank",))
def r3(
    batch: TurnBatch, credit: Tensor | TokenCredit, *, drop: float = 0.25, rank: str = "", top: int = 100
) -> Tensor:
    """Weight 0 for the share ``drop`` of the groups whose `r3_spread` is lowest, and for those where it is 0; 1 for the others.

    First, with ``rank: r3_rank``, groups are dropped in which no reasoning brings the least likely tokens of the right answer into the ``top`` of the
    vocabulary, by their mean rank: nobody can yet learn them. The share is then of the groups that are left.
    `r3_spread` is max_j σ_j, the largest deviation over a group of a token's log-probability in the right answer. DRO (Xu et al. 2025) ranks prompts by it and drops the
    low end. Of G groups at most ⌊drop·G⌋ are dropped: those of which no more are as low or lower, so that equal ones share their fate.
    Ours: an update's groups are ranked, where the paper ranks its data from time to time; the share, and the top. Left out: the tenth of what was
    dropped that is carried over.

    Worked by hand: spreads .5, 0, .1, .3 and a quarter of four groups, then a half; then mean ranks 40, 3, 7, 300, of which the last is beyond 100.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> signals = {"r3_spread": [[0.5], [0.5], [0], [0.1], [0.3]], "ranks": [[40], [40], [3], [7], [300]]}
    >>> batch = turn_batch([[0]] * 5, [0, 0, 1, 2, 3], signals=signals)
    >>> r3(batch, batch.reward_BK).tolist(), r3(batch, batch.reward_BK, drop=0.5).tolist()
    ([1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0, 1.0])
    >>> r3(batch, batch.reward_BK, rank="ranks").tolist()
    [1.0, 1.0, 0.0, 1.0, 0.0]

    Raises:
        RecipeError: ``drop`` is not a share below 1, or ``top`` is below 1.
    """
    if top < 1:
        raise RecipeError(f"filter 'r3': top={top} has no token in it.", "Give 1 or more (100).")
    if not 0 <= drop < 1:
        raise RecipeError(f"filter 'r3': drop={drop:g} is no share of the groups.", "Give 0 ≤ drop < 1.")
    group_B = batch.group_B.unique(return_inverse=True)[1]
    spread_G = _of_groups(batch, "r3_spread", group_B)
    near_G = torch.ones_like(spread_G, dtype=torch.bool)
    if rank:
        near_G = _of_groups(batch, rank, group_B) <= top
    as_low_G = ((spread_G[:, None] >= spread_G) & near_G).sum(1)
    kept_G = near_G & (spread_G > 0) & (as_low_G > floor(drop * int(near_G.sum())))
    return kept_G[group_B].to(torch.float32)


def _of_groups(batch: TurnBatch, name: str, group_B: Tensor) -> Tensor:
    """What a signal says of each group; it is the same on every turn of one."""
    found_B = signal(batch, name)[:, :1].sum(1)
    groups = len(batch.group_B.unique())
    return found_B.new_zeros(groups).scatter_reduce(0, group_B, found_B, "amax")
