"""RLSP: correct answers are paid, short ones cost."""

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import (
    Turns,
    has_answer,
    paid_instead,
    paid_on_last,
    replace_turns,
    sampled_tokens,
)


@component("reward", "rlsp", reads=("rewards",))
def rlsp(group: Group, *, effort: float = 20.0, most: float = 1.0, unanswered: float = 0.5) -> Group:
    """The last turn earns 1 for a solved task, less what shortness and a missing answer cost; nothing else is paid.

    R = 1[solved] − ½·1[no answer] − C/n with n the tokens of all messages and C = ``effort``: the bonus for exploration, which
    costs long thought nearly nothing. RLSP (its released reward server). Ours: C/n is at most ``most``, so that an empty episode
    is not −∞; n counts tokens, not characters / 4; an episode without an answer is one that a limit cut, or whose last act the
    environment could not read. Left out: the optional fifth of a judge (put `from_signal` behind it).

    Worked by hand with the paper's C = 1000: 2000 tokens that solve it, 500 that give no answer, and C = 20.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode, with_tokens
    >>> group = [with_tokens(episode([1], end=EndReason.SOLVED), [2000]), with_tokens(episode([0], end=EndReason.TURN_LIMIT), [500])]
    >>> [one.trajectory.total_reward for one in rlsp(group, effort=1000.0, most=9.0)]
    [0.5, -2.5]
    >>> rlsp(group)[0].trajectory.total_reward, rlsp(group, effort=1000.0)[1].trajectory.total_reward
    (0.99, -1.5)

    Raises:
        RecipeError: a cost is below 0.
    """
    not_below_zero("reward 'rlsp'", effort=effort, most=most, unanswered=unanswered)

    def pay(episode: Episode, turns: Turns) -> Turns:
        n = sampled_tokens(turns)
        short = min(most, effort / n) if n else most
        missing = 0.0 if has_answer(episode, turns) else unanswered
        solved = paid_instead(turns, float(episode.success))
        return paid_on_last(paid_on_last(solved, "length", -short), "format", -missing)

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
