"""A verifier's verdict as the whole reward, with less than a failure's for what a limit cut off."""

from turnwise.agents.core import Episode
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.bounds import not_below_zero
from turnwise.trainers.kit.reward_edits import paid_instead, replace_turns


@component("reward", "verified", paper="2411.15124", reads=("rewards",))
def verified(group: Group, *, solved: float = 1.0, cut: float = 1.0) -> Group:
    """The last turn earns ``solved`` where the task was solved, −``cut`` where a limit ended the episode before, else nothing.

    RLVR (Lambert et al. 2024, Tulu 3): 10 for what a verifier accepts, 0 else, −10 for an answer that ran into the
    limit of length; whatever else the environment pays is taken away. Ours: rewards of the size of 1, and limits of
    turns and of an episode's tokens count as that of length does. Left out: KL in the reward (use the loss `kl`).

    Worked by hand, with the paper's numbers: solved, failed, and cut off in the second turn.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> from turnwise.envs.core import EndReason
    >>> ends = EndReason.SOLVED, EndReason.FAILED, EndReason.TURN_LIMIT
    >>> paid = verified([episode([0.2, 0.4], end=end) for end in ends], solved=10.0, cut=10.0)
    >>> [[turn.reward for turn in one.trajectory.turns] for one in paid]
    [[0.0, 10.0], [0.0, 0.0], [0.0, -10.0]]

    Raises:
        RecipeError: a payment or a cost is below 0.
    """
    not_below_zero("reward 'verified'", solved=solved, cut=cut)

    def paid(episode: Episode) -> Episode:
        cut_off = episode.end is not None and episode.end.truncated
        earned = solved if episode.success else -cut if cut_off else 0.0
        return replace_turns(episode, lambda turns: paid_instead(turns, earned))

    return [paid(episode) for episode in group]
