"""G-RA: small rewards count only where the main reward was earned."""

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, part_total, replace_turns, with_part


@component("reward", "gated", paper="2508.10548", reads=("rewards",))
def gated(
    group: Group, *, gate: str = "outcome", threshold: float = 0.0, then: tuple[str, ...] = ()
) -> Group:
    """Every reward component but ``gate`` is taken away unless the trajectory's ``gate`` exceeds ``threshold``.

    R = R_gate + 1[R_gate > δ]·Σ_k r_k. Gated reward accumulation (Sun et al. 2025): paid as they come, step
    rewards get farmed and the task is left undone. ``then`` makes a chain of it: each of these components counts only where all
    gates before it were passed, and is a gate for what comes after it, with the same threshold.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> steps = {"format": [0.25, 0.125, 0.25]}
    >>> group = [episode([0, 0, 1], parts=steps), episode([0, 0, 0], parts=steps)]
    >>> [e.trajectory.total_reward for e in group], [e.trajectory.total_reward for e in gated(group, threshold=0.5)]
    ([1.625, 0.625], [1.625, 0.0])
    >>> farmed = [episode([0, 0, r], parts={"step": step}) for r, step in ((1, [0.2, 0.1, 0]), (0, [0.2, 0.1, 0.3]))]
    >>> [round(e.trajectory.total_reward, 6) for e in gated(farmed, threshold=0.5)]
    [1.3, 0.0]
    >>> parts = {"outcome": [0, 1], "patch": [0.25, 0], "format": [0.125, 0.125]}
    >>> [e.trajectory.total_reward for e in gated([episode([0, 1], parts=parts)], threshold=0.5, then=("patch",))]
    [1.25]
    """

    def close(turns: Turns) -> Turns:
        counted = list[str]()
        for level in (gate, *then):
            counted.append(level)
            if part_total(turns, level) <= threshold:
                break
        else:
            return turns
        for part in {part for turn in turns for part in turn.rewards}.difference(counted):
            turns = [with_part(turn, part, 0.0) if part in turn.rewards else turn for turn in turns]
        return turns

    return [replace_turns(episode, close) for episode in group]
