"""GRPO-CARE: of those who are right, the ones whose reasoning leads to their answer earn more."""

from statistics import mean

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import paid_on_last, part_total, replace_turns, signal_of

LEAST = 0.1
"""An outcome must be above it to earn a bonus."""
SLACK = 0.01
"""By so much a confidence may lie below the mean of those who may earn one."""


@component("reward", "care", paper="2506.16141", needs=("care",), reads=("rewards", "votes"))
def care(group: Group, *, bonus: float = 0.5) -> Group:
    """An outcome above .1 and at least the group's mean earns ``bonus`` times itself more, where its confidence is not low.

    The confidence is the signal `care` of the last turn; it is not low where it is at least the mean of those who may earn the bonus,
    less .01. What else was paid stays. GRPO-CARE (Chen et al. 2025), which has no KL beside it.

    Worked by hand: outcomes 1, 1, 1, 0, confidences .9, .7, .95, .95, whose mean over the first three is .85.

    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> group = [with_signals(episode([a]), [{"care": q}]) for a, q in [(1, 0.9), (1, 0.7), (1, 0.95), (0, 0.95)]]
    >>> [one.trajectory.total_reward for one in care(group)]
    [1.5, 1.0, 1.5, 0.0]
    >>> near = [with_signals(episode([1.0]), [{"care": q}]) for q in (0.9, 0.885, 0.875)]  # the mean is .8867
    >>> [one.trajectory.total_reward for one in care(near)]
    [1.5, 1.5, 1.0]

    Raises:
        RecipeError: the bonus is below 0, or a turn has no such signal.
    """
    not_below_zero("reward 'care'", bonus=bonus)
    played = [one.trajectory.turns for one in group]
    outcome = [part_total(turns, "outcome") for turns in played]
    sure = [
        signal_of(turns[-1], "care") if turns and a > LEAST and a >= mean(outcome) else None
        for turns, a in zip(played, outcome, strict=True)
    ]
    least = mean([q for q in sure if q is not None] or [0.0]) - SLACK

    earned = [bonus * a * (q is not None and q >= least) for a, q in zip(outcome, sure, strict=True)]
    return [
        replace_turns(one, lambda turns, x=x: paid_on_last(turns, "consistency", x))
        for one, x in zip(group, earned, strict=True)
    ]
