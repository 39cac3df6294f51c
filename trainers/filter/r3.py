"""DRO's filter: groups in which no token of the right answer depends on the reasoning are dropped, and those in which it hardly matters."""

from math import floor

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import signal


@component("filter", "r3", paper="2506.13351", needs=("r3_spread",))
def r3(batch: TurnBatch, credit: Tensor | TokenCredit, *, drop: float = 0.25) -> Tensor:
    """Weight 0 for the share ``drop`` of the groups whose `r3_spread` is lowest, and for those where it is 0; 1 for the others.

    `r3_spread` is max_j σ_j, the largest deviation over a group of a token's log-probability in the right answer. DRO (Xu et al. 2025) ranks prompts by it and drops the
    low end. Of G groups at most ⌊drop·G⌋ are dropped: those of which no more are as low or lower, so that equal ones share their fate.
    Ours: an update's groups are ranked, where the paper ranks its data from time to time; the share. Left out: its first filter, by the
    ranks of the least likely tokens, and the tenth of what was dropped that is carried over.

    Worked by hand: spreads .5, 0, .1, .3 and a quarter of four groups, then a half.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> batch = turn_batch([[0]] * 5, [0, 0, 1, 2, 3], signals={"r3_spread": [[0.5], [0.5], [0], [0.1], [0.3]]})
    >>> r3(batch, batch.reward_BK).tolist(), r3(batch, batch.reward_BK, drop=0.5).tolist()
    ([1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0, 1.0])

    Raises:
        RecipeError: ``drop`` is not a share below 1.
    """
    if not 0 <= drop < 1:
        raise RecipeError(f"filter 'r3': drop={drop:g} is no share of the groups.", "Give 0 ≤ drop < 1.")
    spread_B = signal(batch, "r3_spread")[:, :1].sum(1)  # it is the same on every turn of a group
    groups, group_B = batch.group_B.unique(return_inverse=True)
    spread_G = spread_B.new_zeros(len(groups)).scatter_reduce(0, group_B, spread_B, "amax")
    as_low_G = (spread_G[:, None] >= spread_G).sum(1)
    kept_G = (spread_G > 0) & (as_low_G > floor(drop * len(groups)))
    return kept_G[group_B].to(torch.float32)
