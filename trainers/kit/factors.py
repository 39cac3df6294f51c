"""Comparison of attempts by ranked factors, the most important first."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import part_total, sampled_tokens

FACTORS = ("solved", "outcome", "turns", "tokens")
MARGIN = 0.5  # of a factor's deviation


def compared(part: str, group: Group, factors: Sequence[str], margin: float) -> dict[tuple[int, int], float]:
    """Of each two attempts of a group, by their places: 1 where the first is better, 0 where it is worse, ½ for a tie.

    The first factor whose difference exceeds its margin decides: ``margin`` times its standard deviation in the group, 0 for the first factor.
    A factor is ``solved``, ``turns`` or ``tokens``, of which fewer are better, or a reward component, of which more is better. An attempt
    without a turn is not compared.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> group = [episode([1], parts={"violation": [-v]}) for v in (0, 2)]
    >>> compared("reward 'heron'", group, ("outcome", "violation"), 0.5)
    {(0, 1): 1.0, (1, 0): 0.0}

    Raises:
        RecipeError: there is no factor, or the margin is below 0.
    """
    not_below_zero(part, margin=margin)
    if not factors:
        raise RecipeError(
            f"{part}: there is no factor to compare by.", "Name some, such as factors: [solved, turns]."
        )
    values = {
        i: [_factor(one, name) for name in factors] for i, one in enumerate(group) if one.trajectory.turns
    }
    spread = [statistics.pstdev(column) for column in zip(*values.values(), strict=True)]
    margins = [0.0, *(margin * deviation for deviation in spread[1:])]
    return {(i, j): _won(values[i], values[j], margins) for i, j in itertools.permutations(values, 2)}


def _won(one: Sequence[float], other: Sequence[float], margins: Sequence[float]) -> float:
    for mine, theirs, least in zip(one, other, margins, strict=True):
        if mine - theirs > least:
            return 1.0
        if theirs - mine > least:
            return 0.0
    return 0.5


def _factor(episode: Episode, name: str) -> float:
    """One factor, so that more is better."""
    turns = episode.trajectory.turns
    if name == "solved":
        return float(episode.success)
    if name == "turns":
        return -float(len(turns))
    return -float(sampled_tokens(turns)) if name == "tokens" else part_total(turns, name)
