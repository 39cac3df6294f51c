"""All or nothing: partial credit for the outcome is taken away."""

from turnwise.trainers.core import Group
from turnwise.trainers.registry import component
from turnwise.trainers.rewards import replace_turns, with_part


@component("reward", "success")
def success(group: Group) -> Group:
    """The outcome is 1 on the last turn of a solved episode and 0 everywhere else.

    Partial credit teaches an agent to settle for it: a shop that pays 0.6 for a wrong product is bought
    from at random. The other parts of the ledger (costs, formats, shaping) stay as they are.

    >>> from turnwise.trainers.by_hand import episode
    >>> from turnwise.envs.core import End
    >>> solved, failed = success([episode([0, 0.9], end=End.SOLVED), episode([0.6], end=End.FAILED)])
    >>> [turn.reward for turn in solved.trajectory.turns], failed.trajectory.ret
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
