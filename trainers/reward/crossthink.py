"""One reward for an answer that is right and well formed, and none for either alone."""

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import Turns, is_formed, paid_instead, part_total, replace_turns


@component("reward", "crossthink", reads=("rewards",))
def crossthink(group: Group, *, least: float = 1.0) -> Group:
    """The last turn earns 1 where the outcome is ``least`` or more and the form is right, else 0; nothing else is paid.

    R = R_accuracy ∧ R_format, over tasks of several domains whose answers a rule can check (Nemotron-CrossThink). Its blends are
    shares of suites, such as `suite: {judging/next: 2, calc/quick: 1}`; an item that refuses its own answer is found by
    `turnwise audit tasks` (gold_refused), and `trainers/lab/checkable.py` writes items as a choice or a short answer. Ours: the form is
    right where the environment could read every act and no limit cut the episode.

    Worked by hand with (right, well formed) = (1, 1), (1, 0), (0, 1), (0, 0), where a limit cuts what is malformed:

    >>> from turnwise.envs.core import EndReason
    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> ends = {1: EndReason.SOLVED, 0: EndReason.TURN_LIMIT}
    >>> four = [episode([0, right], end=ends[formed], parts={"cost": [-1, 0]}) for right, formed in [(1, 1), (1, 0), (0, 1), (0, 0)]]
    >>> [one.trajectory.total_reward for one in crossthink(four)]
    [1.0, 0.0, 0.0, 0.0]
    """

    def pay(episode: Episode, turns: Turns) -> Turns:
        right = part_total(turns, "outcome") >= least
        return paid_instead(turns, float(right and is_formed(episode, turns)))

    return [replace_turns(one, lambda turns, one=one: pay(one, turns)) for one in group]
