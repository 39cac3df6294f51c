"""SophiaVL: a soft score of the thoughts counts less in a group in which it prefers failures."""

import math
import statistics

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import Turns, paid_on_last, part_total, replace_turns, signal_of


@component("reward", "trust", paper="2505.17018", asks=("signal",), reads=("rewards",))
def trust(
    group: Group, *, signal: str = "principle", weight: float = 0.3, component: str = "thinking"
) -> Group:
    """The mean of a signal is paid on the last turn, by as much as the group shows that it can be trusted.

    R = a + γ·w·q̄ with a the outcome and q̄ the mean of the signal over the turns. γ = 1 where the mean of q̄ over the group's right
    episodes (a ≥ ½) is no less than over its wrong ones, else e to the power of the difference; where all a ≥ 0.9 or all a ≤ 0.1
    nothing is paid. Trust-GRPO (Fan et al. 2025). The weight falls with a schedule, `reward.trust.weight: {name: decay, smooth: true,
    factor: 0.36788, every: 500}`, for the paper's e^(−step/500). Ours: γ = 1 where all are right or all wrong otherwise;
    episodes without a turn count nowhere. Not copied: the released code takes q̄ = 0 of wrong answers, so that its γ is nearly always 1.

    Worked by hand at step 250, where w = 0.3·e^(−½): right ones thought with 0.4 and 0.6, wrong ones with 0.9 and 0.7, so γ = 0.7408.

    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> group = [with_signals(episode([a]), [{"principle": q}]) for a, q in [(1, 0.4), (1, 0.6), (0, 0.9), (0, 0.7)]]
    >>> [round(one.trajectory.total_reward, 4) for one in trust(group, weight=0.3 * math.exp(-0.5))]
    [1.0539, 1.0809, 0.1213, 0.0944]

    Raises:
        RecipeError: a turn has no such signal, or the weight is below 0.
    """
    not_below_zero("reward 'trust'", weight=weight)
    played = [one.trajectory.turns for one in group if one.trajectory.turns]
    outcomes = [part_total(turns, "outcome") for turns in played]
    thought = [_mean(turns, signal) for turns in played]
    right = [q for a, q in zip(outcomes, thought, strict=True) if a >= 0.5]
    wrong = [q for a, q in zip(outcomes, thought, strict=True) if a < 0.5]
    less = min(0.0, statistics.mean(right) - statistics.mean(wrong)) if right and wrong else 0.0
    alike = all(a >= 0.9 for a in outcomes) or all(a <= 0.1 for a in outcomes)
    trusted = 0.0 if alike else math.exp(less)

    def pay(turns: Turns) -> Turns:
        return paid_on_last(turns, component, trusted * weight * _mean(turns, signal)) if turns else turns

    return [replace_turns(one, pay) for one in group]


def _mean(turns: Turns, signal: str) -> float:
    return statistics.mean(signal_of(turn, signal) for turn in turns)
