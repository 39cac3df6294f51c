"""Absolute Zero's pay: solvers for being right, proposers for tasks that are solved now and then."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import fmean

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, has_answer, paid_instead, replace_turns
from turnwise.trainers.reward.rise import rise

ENV = "turnwise/Triples-v0"


@component("reward", "absolute_zero", paper="2505.03335", whole=True)
def absolute_zero(groups: Sequence[Group]) -> list[Group]:
    """Pays a proposal 1 − ā where some and not all of its solvers are right, else −½, and −1 where it could not be read; solvers as `rise` does.

    ā is the mean success of the tasks that were made of the triple in the same update, for the same kind of reasoning. A value of 0 (ā = 0 or 1), and a
    proposal that execution did not accept, is −½. Absolute Zero (Zhao et al. 2025). Episodes of other environments keep what they
    were paid.

    Worked by hand: ā = 0, 0.125, 0.5, 1 give −½, 0.875, ½, −½.

    >>> [proposed(mean) for mean in (0.0, 0.125, 0.5, 1.0)]
    [-0.5, 0.875, 0.5, -0.5]
    """
    solved: defaultdict[str, list[float]] = defaultdict(list)
    for group in groups:
        for one in group:
            if one.task.env == ENV and "triple" in one.task.options:
                solved[_key(one.task.options["ask"], one.task.options["triple"])].append(float(one.success))
    return [_paid(group, {key: fmean(all_of) for key, all_of in solved.items()}) for group in groups]


def proposed(mean: float) -> float:
    """Return what an accepted proposal earns whose solvers are right so often."""
    return 1 - mean if 0 < mean < 1 else -0.5


def _key(ask: object, triple: object) -> str:
    return repr((ask, triple))


def _paid(group: Group, means: Mapping[str, float]) -> Group:
    if not group or group[0].task.env != ENV:
        return group
    if "triple" in group[0].task.options:
        return rise(group)

    def pay(one: Episode, turns: Turns) -> Turns:
        if not has_answer(one, turns):
            return paid_instead(turns, -1.0)
        triple = turns[-1].details.get("triple")
        return paid_instead(turns, proposed(means.get(_key(one.task.options["ask"], triple), 0.0)))

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
