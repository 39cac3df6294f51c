"""The further groups of an update: what proposers make of what was played, asked for alike by a run and by learning it again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from turnwise.errors import RunError
from turnwise.tasks.core import Task
from turnwise.trainers.core import Group
from turnwise.trainers.proposer.core import (
    SUITE,
    PooledTask,
    ProposerContext,
    proposals_of,
    tasks_within,
)
from turnwise.trainers.run.parts import Parts, RunningProposer
from turnwise.trainers.sampler.core import GroupRequest
from turnwise.trainers.source.held_out import TaskOfSplit

PlayFurther = Callable[[Sequence[GroupRequest], int], Awaitable[list[Group]]]
"""Plays and judges the groups of some requests, the first of which has this number in the update."""


async def proposed(
    parts: Parts, see: ProposerContext, size: int, play: PlayFurther
) -> tuple[list[GroupRequest], list[Group]]:
    """Ask each proposer in turn, and play what it makes; the requests and their groups.

    Args:
        parts: whose proposers are asked.
        see: the update, with the groups that the sampler asked for.
        size: episodes of a task, unless its proposer says otherwise.
        play: comes by the groups: plays them, or reads them from a log.

    Raises:
        RunError: a task is one on which the run is evaluated.
    """
    requests: list[GroupRequest] = []
    played = list(see.played)
    for one in parts.proposers:
        asked = _asked(one, ProposerContext(see.seed, see.update, played, see.pool), size, len(requests))
        if asked:
            played += await play(asked, len(played))
            requests += asked
    return requests, played[len(see.played) :]


def _asked(one: RunningProposer, see: ProposerContext, size: int, first: int) -> list[GroupRequest]:
    asked: list[GroupRequest] = []
    shown = replace(see, held_out=lambda task: _owner(one, task) is not None)
    for n, made in enumerate(proposals_of(one.name, one.proposer, shown), start=first):
        if (owner := _owner(one, made.task)) is not None:
            raise RunError(
                f"proposer {one.name!r} gives task {made.task.id} in update {see.update + 1}, which is of {owner.suite}'s "
                f"{owner.split.value} split, on which this run is evaluated.",
                "Make tasks of what was played, or new ones, and leave out those of which ProposerContext.held_out says so.",
            )
        episodes = made.episodes or size
        asked.append(GroupRequest(f"{SUITE}{one.name}", n, made.task, episodes, made.weight, by=one.name))
    return asked


def _owner(one: RunningProposer, made: Task) -> TaskOfSplit | None:
    """The evaluation to which a task belongs, or one that is within it."""
    owners = (one.held_out.owner_of(task) for task in tasks_within(made)) if one.held_out else ()
    return next((owner for owner in owners if owner is not None), None)


def pooled(requests: Sequence[GroupRequest], update: int) -> list[PooledTask]:
    """Return what proposers made among the requests of an update."""
    return [PooledTask(one.task, one.by, update) for one in requests if one.by]
