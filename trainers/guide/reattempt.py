"""Reattempts: groups that nobody solved are played again, told by the environment how they failed; learned as if untold."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.agents.core import Episode
from turnwise.envs.messages import guidance
from turnwise.envs.registry import env_class
from turnwise.envs.returned import check_report
from turnwise.errors import RecipeError
from turnwise.registry import component
from turnwise.trainers.core import Group
from turnwise.trainers.guide.core import GuidePlayer, is_solved, is_unsolved
from turnwise.trainers.guide.told import ToldPolicy


@component("guide", "reattempt", paper="2506.11425")
async def reattempt(player: GuidePlayer, groups: Sequence[Group], *, attempts: int = 2) -> list[Group]:
    """Plays unsolved groups again, each episode told how the one before it failed; learned as if untold.

    Da et al. 2025, Agent-RLVR: attempt, failure report, reattempt. The report is the environment's own
    (``AgentEnv.failure_report``, from the details of the last turn) and stands between the marks of help at the end of the
    first message. Tokens were sampled under the prompt with it and are scored under the one without it and without all other
    help between such marks, so that the correction's weights are π_old(without)/π_behaviour(with), as in ``hint``. A group is
    attempted at most ``attempts`` times, the first included; the first attempt in which somebody solves it stands in its place,
    and if none does it stays as it was played. Where an environment has nothing to tell, nothing is played. The paper learns
    from pairs of guided attempts (DPO); learning from groups by the recipe's own rule is ours. Since groups are kept by their
    outcomes, the step is that of the policy's own return only where the outcome is the only reward, and the correction the
    whole ratio of a trajectory (docs/recipe-bias.md, of ``hint``).

    >>> from turnwise.trainers.guide.toy import played_with
    >>> plain, guided = played_with(reattempt, "code/quick", groups=1, size=2)
    >>> guided == plain  # an untrained model solves nothing, whatever it is told
    True

    Raises:
        RecipeError: there is no second attempt.
    """
    if attempts < 2:
        raise RecipeError(
            f"guide 'reattempt': attempts={attempts}, and the first of them was played already.",
            "Give 2 or more, or leave the guide out.",
        )
    latest = {number: group for number, group in enumerate(groups) if is_unsolved(group)}
    for _ in range(attempts - 1):
        failed = {number: group for number, group in latest.items() if is_unsolved(group)}
        reports = {number: [report(episode) for episode in group] for number, group in failed.items()}
        asked = player.requests({number: failed[number] for number, told in reports.items() if any(told)})
        told = {
            request.seed: report
            for number, requests in asked.items()
            for request, report in zip(requests, reports[number], strict=True)
        }
        reads = ToldPolicy(
            "guide/reattempt", player.model, lambda history, told=told: guidance(told.get(history.seed, ""))
        )
        latest |= await player.play(asked, reads)
    return [
        [*(latest[number] if number in latest and is_solved(latest[number]) else group)]
        for number, group in enumerate(groups)
    ]


def report(episode: Episode) -> str:
    """Tell how an episode failed, in its environment's words; of one that does not count, nothing."""
    if not episode.outcome.counts:
        return ""
    cls, turns = env_class(episode.task.env), episode.trajectory.turns
    return check_report(cls, cls.failure_report(episode.task, turns[-1].details if turns else {}))
