"""ReNorm: process rewards are never positive in a failure, never negative in a success."""

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, part_total, replace_turns, with_part


@component("reward", "renorm", paper="2509.25598", reads=("rewards",))
def renorm(group: Group, *, part: str = "progress", shift: float = 1.0) -> Group:
    """Shifts a reward component by the outcome: p̂_k = p_k + outcome − β on all turns but the last.

    The last turn loses the part and keeps its outcome. Process rewards in [0, 1] become ≥ 0 where the
    outcome is 1 and ≤ 0 where it is 0. Principle process reward (Xu et al. 2025), β = ``shift`` ≈ 1. Turns
    without the part count as p = 0; episodes without it stay as they are.

    Worked by hand: p = [0.8, 0.4], outcome 1 or 0.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> judged = {"progress": [0.8, 0.4, 0.0]}
    >>> group = renorm([episode([0, 0, 1], parts=judged), episode([0, 0, 0], parts=judged)])
    >>> [[round(turn.reward, 6) for turn in e.trajectory.turns] for e in group]
    [[0.8, 0.4, 1.0], [-0.2, -0.6, 0.0]]
    """

    def change(turns: Turns) -> Turns:
        if not any(part in turn.rewards for turn in turns):
            return turns
        moved = part_total(turns, "outcome") - shift
        early = [with_part(turn, part, turn.rewards.get(part, 0.0) + moved) for turn in turns[:-1]]
        return [*early, with_part(turns[-1], part, 0.0)]

    return [replace_turns(episode, change) for episode in group]
