"""RISE's and Absolute Zero's three levels: right, wrong, and no answer at all."""

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, has_answer, paid_instead, replace_turns


@component("reward", "rise", paper="2505.13445", reads=("rewards",))
def rise(group: Group, *, right: float = 1.0, wrong: float = -0.5, unanswered: float = -1.0) -> Group:
    """Pays 1 for what is right, −½ for what is wrong, −1 where there is no answer; nothing else is paid.

    The reward of RISE (Liu et al. 2025) for solving and for grading alike, and that of Absolute Zero's solver (Zhao et al. 2025). There
    an answer is what stands in a box; here an episode has none that ended by a limit or by an act that could not be read, be it that
    the environment refused it or that it tells so (``malformed`` in ``info["details"]``, as turnwise/Judging-v0 does).

    Worked by hand: the target is −½; −½ in the box is right, 1 in the box is wrong, and without a box there is no answer.

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> right = episode([1.0], end=EndReason.SOLVED)
    >>> wrong, cut = episode([0.3]), episode([0.0], end=EndReason.TURN_LIMIT)
    >>> unread = episode([0.0], details=[{"malformed": True}])
    >>> [one.trajectory.total_reward for one in rise([right, wrong, cut, unread])]
    [1.0, -0.5, -1.0, -1.0]
    """

    def pay(episode: Episode, turns: Turns) -> Turns:
        answered = right if episode.success else wrong
        return paid_instead(turns, answered if has_answer(episode, turns) else unanswered)

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
