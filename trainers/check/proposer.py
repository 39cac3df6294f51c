"""Requirements for proposers, on groups that a scripted policy played in a small shop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from turnwise.agents.policies.registry import make_policy
from turnwise.agents.rollout import Request, rollout
from turnwise.registry import Component
from turnwise.requirements import NotTested, Requirements, require
from turnwise.tasks.core import Task
from turnwise.trainers.check.options import EVERY_PART, variants
from turnwise.trainers.core import Group
from turnwise.trainers.proposer.core import PooledTask, ProposerContext, TaskProposal, proposals_of
from turnwise.trainers.strategy.chain import chain
from turnwise.trainers.strategy.runner import try_out

SUITE, GROUPS, SIZE, UPDATES = "shop/quick", 4, 4, 3
SEEDS = range(3)


def _played() -> list[Group]:
    return try_out(chain, "mix:gold=1,random=1", SUITE, groups=GROUPS, size=SIZE)[0]


def _pool(groups: Sequence[Group]) -> tuple[PooledTask, ...]:
    return tuple(PooledTask(group[0].task, "other", 0) for group in groups[:1])


def _ids(made: Sequence[TaskProposal]) -> list[tuple[str, int, float]]:
    return [(one.task.id, one.episodes, one.weight) for one in made]


def is_pure(entry: Component) -> str:
    """The same groups, seed and update give the same tasks, and nothing that it is given is changed."""
    groups, counts = _played(), list[int]()
    pool = _pool(groups)
    for said, proposer in variants(entry):
        for seed in SEEDS:
            before = repr(groups)
            asked = [ProposerContext(seed, UPDATES, groups, pool) for _ in range(2)]
            one, other = (proposals_of(entry.name, proposer, see) for see in asked)
            require(_ids(one) == _ids(other), f"Asked twice, it makes other tasks ({said}).")
            require(repr(groups) == before, f"It changes what it is given ({said}).")
            counts.append(len(one))
    return f"up to {max(counts)} tasks of {GROUPS * SIZE} episodes"


def makes_nothing_of_nothing(entry: Component) -> None:
    """It can be asked where nothing was played, as in an update all of whose episodes failed."""
    for _, proposer in variants(entry):
        proposals_of(entry.name, proposer, ProposerContext(0, 0))


def makes_tasks_that_are_data(entry: Component) -> None:
    """A task that is written down and read again is the same task."""
    for task in _made(entry):
        require(Task.from_json(json.loads(json.dumps(task.to_json()))) == task, f"Task {task.id} is no data.")


def makes_tasks_that_can_be_solved(entry: Component) -> str:
    """Each task can be played, and its environment's own solution solves it."""
    tasks = _made(entry)
    if not tasks:
        raise NotTested("It made no task of what was played here.")
    requests = [Request(task, number) for number, task in enumerate(tasks)]
    episodes = asyncio.run(rollout(requests, make_policy("scripted:gold")))
    for episode in episodes:
        require(
            episode.success, f"Task {episode.task.id} is not solved by gold: {episode.error or episode.end}."
        )
    return f"{len(tasks)} tasks"


def plays_in_the_environments_that_it_names(entry: Component) -> None:
    """A task that was not played before is of an environment in ``envs``."""
    known = {SUITE, *(group[0].task.env for group in _played()), *entry.envs}
    for task in _made(entry):
        require(task.env in known, f"A task is of {task.env}, which its `envs` does not name.")


def _made(entry: Component) -> list[Task]:
    groups = _played()
    return [
        one.task
        for _, proposer in variants(entry)
        for one in proposals_of(entry.name, proposer, ProposerContext(0, UPDATES, groups, _pool(groups)))
    ]


REQUIREMENTS: dict[str, Requirements] = {
    "proposer": {
        **EVERY_PART,
        "is pure": is_pure,
        "makes nothing of nothing": makes_nothing_of_nothing,
        "makes tasks that are data": makes_tasks_that_are_data,
        "makes tasks that can be solved": makes_tasks_that_can_be_solved,
        "plays in the environments that it names": plays_in_the_environments_that_it_names,
    }
}
