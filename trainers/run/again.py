"""A sampler is asked again within an update: it may want more episodes of what was just played."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from turnwise.agents.core import Episode
from turnwise.agents.rollout import Request
from turnwise.envs.core import EndReason
from turnwise.errors import RunError
from turnwise.trainers.core import Group
from turnwise.trainers.sampler.core import GroupRequest, Sampler, SeenGroup
from turnwise.trainers.strategy.runner import Plan, plan_group

Play = Callable[[Plan], Awaitable[list[Group]]]


def asked_again(
    sampler: Sampler, update: int, asked: Sequence[GroupRequest], played: Sequence[Group]
) -> list[GroupRequest]:
    """Return what the sampler wants of groups that were played as ``asked``.

    Raises:
        RunError: it wants another task, or fewer episodes than were played.
    """
    seen = [
        SeenGroup(request, [episode for episode in group if episode.outcome.counts], 0.0)
        for request, group in zip(asked, played, strict=True)
    ]
    wanted = sampler.again(update, seen)
    for before, after in zip(asked, wanted, strict=True):
        if after.task != before.task or after.episodes < before.episodes:
            raise RunError(
                f"The sampler was asked again in update {update + 1} and answers {after.episodes} episodes of task "
                f"{after.task.id} to {before.episodes} of {before.task.id}.",
                "Its `again` may add episodes to the groups that it is given, and change their weights.",
            )
    return wanted


async def play_on(
    sampler: Sampler,
    play: Play,
    asked: list[GroupRequest],
    played: list[Group],
    *names: int,
    first: int,
) -> tuple[list[GroupRequest], list[Group]]:
    """Play what the sampler wants beyond ``played``, until it wants no more; its requests and their groups.

    Args:
        sampler: that planned them.
        play: plays a plan.
        asked: the requests of the round.
        played: their groups.
        names: seed and update, which begin the names of episodes.
        first: the number of the first group in the update.
    """
    while sampler.adds:
        wanted = asked_again(sampler, names[-1], asked, played)
        more: list[list[Request]] = [
            plan_group(after.task, after.episodes, *names, g)[before.episodes :]
            for g, (before, after) in enumerate(zip(asked, wanted, strict=True), start=first)
        ]
        asked = wanted
        if not any(more):
            break
        added = iter(await play([requests for requests in more if requests]))
        played = [
            [*group, *next(added)] if requests else group
            for requests, group in zip(more, played, strict=True)
        ]
    return asked, played


def replayed(
    sampler: Sampler, update: int, asked: list[GroupRequest], logged: Sequence[Group]
) -> list[GroupRequest]:
    """Return the requests that led to the groups of a log, whose first episodes are those that were first played.

    Where a guide had a hand in an episode, one that failed was played in its place
    (:class:`~turnwise.trainers.guide.core.ReplacesFailures`).
    """
    played = [[_as_it_failed(one) for one in group] for group in logged]
    while sampler.adds:
        begun = [group[: request.episodes] for request, group in zip(asked, played, strict=True)]
        wanted = asked_again(sampler, update, asked, begun)
        grown = any(after.episodes > before.episodes for before, after in zip(asked, wanted, strict=True))
        asked = wanted
        if not grown:
            break
    return asked


def _as_it_failed(episode: Episode) -> Episode:
    """An episode in which a guide had a hand, as a failure; any other as it is."""
    helped = any(turn.reply.source.startswith("guide/") for turn in episode.trajectory.turns)
    return replace(episode, end=EndReason.FAILED) if helped else episode
