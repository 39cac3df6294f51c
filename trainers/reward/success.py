"""All or nothing: partial credit for the outcome is removed."""

from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.kit.reward_edits import replace_turns, with_part


@component("reward", "success", reads=("rewards",))
def success(group: Group) -> Group:
    """The outcome is 1 on the last turn of a solved episode and 0 everywhere else.

    Partial credit teaches an agent to settle for it: a shop that pays 0.6 for a wrong product is bought
    from at random. The other reward components (costs, formats, shaping) stay as they are.

    >>> from turnwise.trainers.kit.toy_batches import episode
    >>> from turnwise.envs.core import EndReason
    >>> solved, failed = success([episode([0, 0.9], end=EndReason.SOLVED), episode([0.6], end=EndReason.FAILED)])
    >>> [turn.reward for turn in solved.trajectory.turns], failed.trajectory.total_reward
    ([0.0, 1.0], 0.0)
    """
    return [
        replace_turns(
            episode,
            lambda turns, solved=episode.success: [
                with_part(turn, "outcome", float(solved and turn is turns[-1])) for turn in turns
            ],
        )
        for episode in group
    ]
