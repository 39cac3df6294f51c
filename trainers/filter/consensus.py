"""Consensus of labels: a trajectory counts where forks and a judge find the same first error."""

import torch
from torch import Tensor

from turnwise.registry import component
from turnwise.trainers.core import TokenCredit, TurnBatch
from turnwise.trainers.kit.groups import following, signal


@component("filter", "consensus", paper="2501.07301", needs=("fork_value", "wrong"))
def consensus(batch: TurnBatch, credit: Tensor | TokenCredit, *, success: float = 1.0) -> Tensor:
    """Weight 1 for trajectories of which forks and a judge call the same turn the first that was wrong, or both none; 0 for the others.

    Lessons of developing process reward models (Zhang et al. 2025): a turn is right where one of its forks succeeded, whatever their
    share (`fork_value` after it is above 0), and the last one where the return is ``success``; the judge says `wrong`. About 40 % of theirs are
    kept. `rollout: {strategy: {name: vine, forks: 8}}` with `judge: critic` is the paper's; what such labels pay is another part's matter.
    A reward that does not come of success, such as partial credit, makes forks look right; `reward: success` has none.

    Worked by hand: forks find their first error at turn 3 of 4, and the judge at 3, at 2, or at none; a success without errors, of which the judge says so, and
    of which it calls the last turn wrong.

    >>> from turnwise.trainers.kit.toy_batches import turn_batch
    >>> failed, won = [0.5, 0.5, 0.25, 0.0], [0.5, 0.5, 0.25, 0.75]
    >>> wrong = [[0, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    >>> batch = turn_batch([[0, 0, 0, 0]] * 3 + [[0, 0, 0, 1]] * 2, signals={"fork_value": [failed] * 3 + [won] * 2, "wrong": wrong})
    >>> consensus(batch, batch.reward_BK).tolist()
    [1.0, 0.0, 0.0, 1.0, 0.0]
    """
    mask_BK = batch.mask_BK
    solved_B = (batch.return_B >= success - 1e-6).to(batch.reward_BK.dtype)
    after_BK = following(signal(batch, "fork_value").to(solved_B.dtype), solved_B, mask_BK)
    by_forks_BK = (after_BK <= 0) & mask_BK
    by_judge_BK = signal(batch, "wrong") > 0.5
    return ((by_forks_BK.cumsum(1) > 0) == (by_judge_BK.cumsum(1) > 0)).all(1).to(torch.float32)
