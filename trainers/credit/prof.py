"""PROF: of what was played those are compared whose turns agree with their outcome."""

import torch
from torch import Tensor

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import TurnBatch
from turnwise.trainers.kit.groups import group_z, over_turns
from turnwise.trainers.kit.groups import signal as measured


@component(
    "credit",
    "prof",
    paper="2509.03403",
    needs=("principle",),
    bias="biased: who is learned from, and compared, depends on a judge's scores and on the group that the trajectory is in",
)
def prof(
    batch: TurnBatch,
    *,
    keep: int = 4,
    cost: float = 0.0,
    longest: int = 0,
    success: float = 1.0,
) -> Tensor:
    """GRPO among ``keep`` trajectories of each group, successes with sound turns and failures with unsound ones; 0 for the rest.

    Of k₊ + k₋ = ``keep`` the largest k₊·k₋ that there are enough successes and failures for, the successes with the highest
    (mean_h s_h − λ·1[H = 1 or H ≥ ``longest``]) and the failures with the lowest mean_h s_h, s_h a judge's score of turn h (the
    signal ``principle``), H their number, λ = ``cost``. PROF (Ye et al. 2025), both sides filtered: scores choose and are never paid.
    Play more than ``keep`` episodes of a task. Ours: with an odd ``keep`` the successes are one more, where there are enough, and equals
    go by their place in the group; who ended before the first turn has no score and is not chosen. ``longest`` 0: no number is too
    many. Left out: failures drawn by chance.

    Worked by hand with λ = 0.2, 4 turns too many: successes .9 .8 | .8 | .5 .5 .5 | .9 .9 .9 .9 have .85, .6, .5, .7, failures
    .2 .4 | .8 .9 | .5 .5 have .3, .85, .5: the first and fourth, and the first and third.

    >>> from turnwise.trainers.kit.toy_batches import rounded, turn_batch
    >>> scores = [[0.9, 0.8], [0.8], [0.5] * 3, [0.9] * 4, [0.2, 0.4], [0.8, 0.9], [0.5, 0.5]]
    >>> paid = [[0.0] * (len(row) - 1) + [float(i < 4)] for i, row in enumerate(scores)]
    >>> found = prof(turn_batch(paid, signals={"principle": scores}), keep=4, cost=0.2, longest=4)
    >>> [row[0] for row in rounded(found, 4)]
    [0.866, 0.0, 0.0, 0.866, -0.866, 0.0, -0.866]

    Raises:
        RecipeError: ``keep`` is below 2.
    """
    if keep < 2:
        raise RecipeError(f"credit 'prof': keep={keep} leaves nothing to compare.", "Give it at least 2.")
    length_B = batch.length_B
    score_BK = measured(batch, "principle") * batch.mask_BK
    mean_B = score_BK.sum(-1) / length_B
    odd_B = (length_B == 1) | ((length_B >= longest) if longest else torch.zeros_like(length_B).bool())
    solved_B = batch.return_B >= success - 1e-6
    worth_B = torch.where(solved_B, mean_B - cost * odd_B, -mean_B)
    advantage_B = torch.zeros_like(batch.return_B)
    for group in batch.group_B.unique():
        in_B = (batch.group_B == group) & (length_B > 0)
        good, bad = ((in_B & one).nonzero()[:, 0] for one in (solved_B, ~solved_B))
        most = _most(len(good), len(bad), keep)
        kept = torch.cat(
            [
                side[worth_B[side].argsort(descending=True, stable=True)][:count]
                for side, count in zip((good, bad), most, strict=True)
            ]
        )
        advantage_B[kept] = group_z(batch.return_B[kept], torch.zeros_like(kept))
    return over_turns(advantage_B, batch)


def _most(good: int, bad: int, keep: int) -> tuple[int, int]:
    """How many successes and failures are kept of so many: the largest product, of equal ones that with more successes.

    >>> _most(4, 3, 4), _most(1, 7, 4), _most(0, 6, 4), _most(4, 4, 3), _most(1, 1, 4)
    ((2, 2), (1, 3), (0, 4), (2, 1), (1, 1))
    """
    total = min(keep, good + bad)
    counts = range(total - bad, good + 1)  # those below 0 or above the total have products below 0
    first = max(counts, key=lambda k: (k * (total - k), k))
    return first, total - first
