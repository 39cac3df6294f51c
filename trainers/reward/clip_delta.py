"""Clip and Delta: process rewards that cannot be farmed by taking more steps."""

from itertools import pairwise

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, replace_turns, signal_of, with_part


@component("reward", "clip_delta", paper="2410.15115", asks=("signal",), reads=("rewards",))
def clip_delta(
    group: Group,
    *,
    part: str = "progress",
    clip: bool = True,
    delta: bool = True,
    threshold: float = 0.5,
    signal: str = "",
) -> Group:
    """One reward component is bounded from above, then replaced by its differences.

    Clip: r_k = min(p_k − η, 0). Delta: r_k = p_k − p_{k+1}, the last but one turn keeps p, the last gets 0, so that
    what is still to come from turn k on sums to p_k. Both: first clip, then delta. Gao et al. 2024.
    Turns without the part count as p = 0; episodes without it stay as they are. With ``signal``, p is what a judge or a process
    model says of each turn, and the result is paid as the component ``part``.

    Worked by hand: p = [0.8, 0.3, 0.6, 0.9], η = 0.5: clipped [0, −0.2, 0, 0], then delta [0.2, −0.2, 0, 0].

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> group = [episode([0, 0, 0, 0], parts={"progress": [0.8, 0.3, 0.6, 0.9]})]
    >>> [round(turn.reward, 6) for turn in clip_delta(group)[0].trajectory.turns]
    [0.2, -0.2, 0.0, 0.0]
    >>> [round(turn.reward, 6) for turn in clip_delta(group, clip=False)[0].trajectory.turns]
    [0.5, -0.3, 0.6, 0.0]
    >>> [round(turn.reward, 6) for turn in clip_delta(group, delta=False)[0].trajectory.turns]
    [0.0, -0.2, 0.0, 0.0]
    >>> from turnwise.trainers.kit.reward_edits import with_signals
    >>> judged = with_signals(episode([0, 0, 0, 1]), [{"principle": p} for p in (0.8, 0.3, 0.6, 0.9)])
    >>> [round(turn.reward, 6) for turn in clip_delta([judged], signal="principle")[0].trajectory.turns]
    [0.2, -0.2, 0.0, 1.0]

    Raises:
        RecipeError: a turn has no such signal.
    """

    def change(turns: Turns) -> Turns:
        if not (signal and turns) and not any(part in turn.rewards for turn in turns):
            return turns
        p = [signal_of(turn, signal) if signal else turn.rewards.get(part, 0.0) for turn in turns]
        if clip:
            p = [min(x - threshold, 0.0) for x in p]
        if delta:
            p = [*(x - after for x, after in pairwise(p[:-1])), *p[-2:-1], 0.0]
        return [with_part(turn, part, x) for turn, x in zip(turns, p, strict=True)]

    return [replace_turns(episode, change) for episode in group]
