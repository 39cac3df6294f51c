"""Outcomes that are wrong now and then: a stress test of recipes, and at ½ a control by rewards of pure chance."""

from typing import Literal

from turnwise.agents.core import Episode
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.tasks.core import derive_rng
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, paid_on_last, part_total, replace_turns


@component("reward", "noisy", reads=("rewards",))
def noisy(group: Group, *, rate: float = 0.1, scope: Literal["group", "sample"] = "group") -> Group:
    """With probability ``rate`` the outcome r becomes 1 − r, on the last turn: of a whole group, or of each episode by itself.

    A wrong label turns a whole group around; by episode the expected outcome is r + ``rate``·(1 − 2·r), so that advantages shrink by
    1 − 2·``rate``. Noisy rewards (their released reward manager). With ``rate: 0.5, scope: sample`` a solved and a failed episode are
    paid by the same fair coin, the control of spurious rewards: a gain by it is leakage or format. Chance comes from the episodes' task and
    seeds, so that a run can be repeated.

    Worked by hand: certain flips, and of 4000 outcomes of 0.7 at a rate of 0.4 the mean 0.54.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> [one.trajectory.total_reward for one in noisy([episode([0, 1]), episode([0, 0.25])], rate=1.0)]
    [0.0, 0.75]
    >>> import dataclasses
    >>> many = [dataclasses.replace(episode([0.7]), seed=n) for n in range(4000)]
    >>> round(sum(one.trajectory.total_reward for one in noisy(many, rate=0.4, scope="sample")) / 4000, 2)
    0.54

    Raises:
        RecipeError: the rate is no probability.
    """
    if not 0 <= rate <= 1:
        raise RecipeError(f"reward 'noisy': rate={rate:g} is no probability.", "Set it between 0 and 1.")
    seeds = sorted(one.seed for one in group)
    whole = derive_rng("noisy", sorted({one.task.id for one in group}), seeds).random() < rate

    def flipped(one: Episode) -> bool:
        if scope == "group":
            return whole
        return derive_rng("noisy", one.task.id, one.seed).random() < rate

    def flip(turns: Turns) -> Turns:
        return paid_on_last(turns, "outcome", 1.0 - part_total(turns, "outcome"))

    return [replace_turns(one, flip) if flipped(one) else one for one in group]
