"""The group's most frequent answer in place of a right one, as test-time reinforcement learning pays it."""

from statistics import multimode

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import paid_instead, replace_turns
from turnwise.trainers.kit.spoken import said


@component("reward", "majority", reads=("rewards", "votes"))
def majority(group: Group) -> Group:
    """An episode whose last act is the group's most frequent one earns 1 on its last turn, any other 0; nothing else is paid.

    The pseudo label of ETTRL and TTRL: no right answer is needed. Acts are compared as texts, but for case and white space. Ours: where several
    are equally frequent, each of them is paid; an episode without a turn has no vote.

    Worked by hand: two of three say the same.

    >>> from turnwise.trainers.kit.toy_batches import episode, with_calls
    >>> group = [with_calls(episode([0, 0]), [[], [("answer", {"number": n})]]) for n in (7, 7, 9)]
    >>> [one.trajectory.total_reward for one in majority(group)]
    [1.0, 1.0, 0.0]
    """
    answers = [said(one) for one in group]
    frequent = multimode(answer for answer in answers if answer)
    return [
        replace_turns(one, lambda turns, won=answer in frequent: paid_instead(turns, float(won)))
        for one, answer in zip(group, answers, strict=True)
    ]
