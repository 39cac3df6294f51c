"""ReST-GRPO's further prompts: tasks begin in the middle of the best episode that was just played."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random
from statistics import pstdev

from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer
from turnwise.trainers.guide.rows import masked
from turnwise.trainers.strategy.runner import TurnPoint


@component("guide", "rest_rl", paper="2508.19576", only_read=True)
async def rest_rl(
    player: GuidePlayer,
    groups: Sequence[Group],
    *,
    least: float = 0.05,
    best: float = 0.9,
    share: float = 0.5,
    decay: float = 0.95,
) -> list[Group]:
    """Plays groups again from a partial state of their best episode, early states rather than late ones; only what follows is learned.

    ReST-RL (Zhoubian et al. 2025): a task whose rewards deviate by ``least`` or more and whose best is ``best`` or more has ⌈``share``·L⌉ further prompts, partial
    solutions after lines i = 0 … L − 1 of its best sample, drawn with replacement and weights ``decay``^i; all prompts are then trained on alike.
    A line is a turn here: the environment is brought back to the state after it, all members of the group go on from there, and the turns before are
    read and carry no loss. Ours: an update has one group of each task, so that with n further prompts the group is by chance n/(n + 1) played again from one of them, and is
    otherwise what it was; the end of an episode is no state to begin in, and one that draws it stays. The best is the first of equals. Tasks that deviate less
    are dropped by the filter `rest_rl`. Left out: 0.001 for a proper end and −0.000001 for each character after it, which are of programs.

    It changes the objective: tasks are trained from other first states than they are evaluated from.

    Worked by hand: a best episode of 4 turns has 2 further prompts, one of 5 has 3.

    >>> further(4, 0.5), further(5, 0.5), [round(w / sum(weights(4, 0.95)), 4) for w in weights(4, 0.95)]
    (2, 3, [0.2696, 0.2561, 0.2433, 0.2311])
    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(rest_rl, "shop/quick", groups=1, size=2)
    >>> guided == plain  # an untrained model solves nothing
    True

    Raises:
        RecipeError: a share or the decay is not above 0 and up to 1, or ``least`` is below 0.
    """
    if least < 0 or not 0 < share <= 1 or not 0 < decay <= 1:
        raise RecipeError(
            f"guide 'rest_rl': least={least:g}, share={share:g}, decay={decay:g}.",
            "Give a deviation from 0 on (0.05), and 0 < x ≤ 1 for share (0.5) and decay (0.95).",
        )
    drawn = {n: _drawn(group, player.rng(n), least, best, share, decay) for n, group in enumerate(groups)}
    wanted = {n: point for n, point in drawn.items() if point is not None}
    points = await player.moments([*wanted.values()])
    reached = {n: point for n, point in zip(wanted, points, strict=True) if point is not None}
    starts = {n: [point] * len(groups[n]) for n, point in reached.items()}
    played = await player.go_on(starts, player.policy)
    return [
        [masked(one, lambda k, begun=wanted[n].turn: k < begun) for one in played[n]]
        if n in played
        else [*group]
        for n, group in enumerate(groups)
    ]


def further(turns: int, share: float) -> int:
    """The number of further prompts that a best episode of so many turns gives."""
    return math.ceil(share * turns)


def weights(turns: int, decay: float) -> list[float]:
    """The chances that the state after each turn is drawn, up to a factor."""
    return [decay**i for i in range(turns)]


def _drawn(
    group: Group, rng: Random, least: float, best: float, share: float, decay: float
) -> TurnPoint | None:
    """The moment from which a group is played again; None where it stays."""
    counted = [one for one in group if one.outcome.counts]
    earned = [one.trajectory.total_reward for one in counted]
    if not earned or pstdev(earned) < least - 1e-6 or max(earned) < best - 1e-6:
        return None
    chosen = counted[earned.index(max(earned))]
    turns = len(chosen.trajectory.turns)
    prompts = further(turns, share)
    if not turns or rng.random() >= prompts / (prompts + 1):
        return None
    (after,) = rng.choices(range(1, turns + 1), weights(turns, decay))
    return TurnPoint(chosen, after) if after < turns else None
