"""HERON: attempts are compared by one factor after the other, the most important first."""

import statistics

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import paid_instead, part_total, replace_turns, sampled_tokens


@component("reward", "heron", reads=("rewards",))
def heron(
    group: Group, *, factors: tuple[str, ...] = ("solved", "outcome", "turns", "tokens"), margin: float = 0.5
) -> Group:
    """The share of the group that an attempt beats, by the first factor that tells the two apart; nothing else is paid.

    Of two attempts, ``factors`` are looked at in their order: the first whose difference exceeds its margin decides, and where none does it is a
    tie, which is half a win each. Margins are ``margin`` times the factor's standard deviation in the group, and 0 for the first.
    R_i = wins/(G − 1), paid on the last turn, ½ where it is alone; one without a turn is not compared. HERON (hierarchical comparison; its released training of reward models).
    Factors need no weights. A factor is ``solved``, ``turns`` or ``tokens``, of which fewer are better, or a reward component,
    of which more is better. Ours: the win rate is paid, where the paper first fits a reward model to the comparisons (−log σ(r_w − r_l)).

    Worked by hand: equal success, two violations against none, whose deviation is 1; then three of which two are within the margin.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> def of(*violations: float) -> list[float]:
    ...     group = [episode([1], parts={"violation": [-v]}) for v in violations]
    ...     return [one.trajectory.total_reward for one in heron(group, factors=("outcome", "violation"))]
    >>> of(0, 2), of(0, 0.25, 4)
    ([1.0, 0.0], [0.75, 0.75, 0.0])

    Raises:
        RecipeError: there is no factor, or the margin is below 0.
    """
    not_below_zero("reward 'heron'", margin=margin)
    if not factors:
        raise RecipeError(
            "reward 'heron': there is no factor to compare by.",
            "Name some, such as factors: [solved, turns].",
        )
    values = {
        i: [_factor(one, name) for name in factors] for i, one in enumerate(group) if one.trajectory.turns
    }
    spread = [statistics.pstdev(column) for column in zip(*values.values(), strict=True)]
    margins = [0.0, *(margin * deviation for deviation in spread[1:])]

    def won(one: list[float], other: list[float]) -> float:
        for mine, theirs, least in zip(one, other, margins, strict=True):
            if mine - theirs > least:
                return 1.0
            if theirs - mine > least:
                return 0.0
        return 0.5

    def rate(i: int) -> float:
        return statistics.fmean([won(values[i], other) for j, other in values.items() if j != i] or [0.5])

    return [
        replace_turns(one, lambda turns, i=i: paid_instead(turns, rate(i))) if i in values else one
        for i, one in enumerate(group)
    ]


def _factor(episode: Episode, name: str) -> float:
    """One factor, so that more is better."""
    turns = episode.trajectory.turns
    if name == "solved":
        return float(episode.success)
    if name == "turns":
        return -float(len(turns))
    return -float(sampled_tokens(turns)) if name == "tokens" else part_total(turns, name)
