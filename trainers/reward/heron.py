"""HERON: attempts are compared by one factor after the other, the most important first."""

import statistics

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.factors import FACTORS, MARGIN, compared
from turnwise.trainers.kit.reward_edits import paid_instead, replace_turns


@component("reward", "heron", reads=("rewards",))
def heron(group: Group, *, factors: tuple[str, ...] = FACTORS, margin: float = MARGIN) -> Group:
    """The share of the group that an attempt beats, by the first factor that tells the two apart; nothing else is paid.

    Of two attempts, ``factors`` are looked at in their order: the first whose difference exceeds its margin decides, and where none does it is a
    tie, which is half a win each. Margins are ``margin`` times the factor's standard deviation in the group, and 0 for the first.
    R_i = wins/(G − 1), paid on the last turn, ½ where it is alone; one without a turn is not compared. HERON (hierarchical comparison; its released training of reward models).
    Factors need no weights. A factor is ``solved``, ``turns`` or ``tokens``, of which fewer are better, or a reward component,
    of which more is better. The paper's reward model, which is fitted to such comparisons, is the signal `heron`; here the win rate is paid.

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
    won = compared("reward 'heron'", group, factors, margin)

    def rate(i: int) -> float:
        return statistics.fmean([x for (one, _), x in won.items() if one == i] or [0.5])

    return [
        replace_turns(one, lambda turns, i=i: paid_instead(turns, rate(i))) for i, one in enumerate(group)
    ]
