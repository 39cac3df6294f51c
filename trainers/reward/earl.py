"""EARL: evidence is paid beside the answer, first that any was chosen, later that it is the right one."""

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import Turns, paid_instead, paid_on_last, replace_turns, told_list
from turnwise.trainers.kit.sets import overlap


@component("reward", "earl", reads=("rewards",))
def earl(
    group: Group, *, select: float = 0.3, overlaps: float = 0.1, found: str = "read", gold: str = "evidence"
) -> Group:
    """The answer counts 1 with evidence that overlaps by half, ½ without, −1 if wrong; evidence is paid beside it; nothing else is.

    R = r_c + α·1[some evidence] + β·o on the last turn, with o = |found ∩ gold| / |found ∪ gold| and r_c = 1 for a solved task with o ≥ ½, ½ for one
    with less, −1 otherwise. EARL (editing of evidence): α = ``select`` is high and β = ``overlaps`` low at first, and they swap at some
    progress P, which is `schedule: {reward.earl.select: {name: steps, at: [50], values: [0.1]}, reward.earl.overlaps: {name: steps, at: [50],
    values: [0.3]}}`. Both lists are told by the environment in ``info["details"]``, by default the passages read and the gold ones of
    turnwise/Search-v0, where the paper has frames of a video.

    Worked by hand: 1, 2, 3 against 2, 3, 4 overlaps by ½, of a right answer and of a wrong one; then right without evidence.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> told = [({1, 2, 3}, EndReason.SOLVED), ({1, 2, 3}, EndReason.FAILED), ((), EndReason.SOLVED)]
    >>> group = [episode([0], details=[{"read": [*chosen], "evidence": [2, 3, 4]}], end=end) for chosen, end in told]
    >>> [round(one.trajectory.total_reward, 6) for one in earl(group)]
    [1.35, -0.65, 0.5]

    Raises:
        RecipeError: a weight is below 0.
    """
    not_below_zero("reward 'earl'", select=select, overlaps=overlaps)

    def pay(turns: Turns, *, solved: bool) -> Turns:
        chosen = told_list(turns, found)
        share = overlap(chosen, told_list(turns, gold))
        right = (1.0 if share >= 0.5 else 0.5) if solved else -1.0
        return paid_on_last(paid_instead(turns, right), "evidence", select * bool(chosen) + overlaps * share)

    return [replace_turns(one, lambda turns, one=one: pay(turns, solved=one.success)) for one in group]
