"""Proposers, which make further tasks of an update out of what was just played, and the pool that keeps what they made.

An update plays the sampler's groups first. Then each proposer is asked in turn, with all groups so far, and the tasks that it gives are
played as further groups of the same update: judged, paid, credited and learned as the others are. A proposer is a pure function, so
that learning again from an episode log asks the same (:mod:`turnwise.trainers.run.relearn`); what a *policy* proposes, it says in an
environment, whose episodes a proposer reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, TypeAlias, cast

from turnwise.errors import RunError
from turnwise.tasks.core import Json, Task, derive_rng
from turnwise.trainers.core import Group, PartState

SUITE = "pool:"
"""With this begins the name under which the tasks of a proposer stand in logs and metrics: ``pool:NAME``."""


class TaskProposal(NamedTuple):
    """A task that is to be played.

    Attributes:
        task: as data.
        episodes: how often it is played; ``rollout.group_size`` if 0.
        weight: of the task in the update; 1 is that of any other.
    """

    task: Task
    episodes: int = 0
    weight: float = 1.0


class PooledTask(NamedTuple):
    """A task that was made in a run: by which proposer, in which update (counted from 0)."""

    task: Task
    by: str
    update: int


@dataclass(frozen=True)
class ProposerContext:
    """Inputs of a proposer.

    Attributes:
        seed: the run's.
        update: its number, from 0.
        played: the groups of the update so far, judged and not rewarded; those of earlier proposers come last.
        pool: the tasks that were made in earlier updates and are kept, oldest first.
        held_out: says of a task whether the run is evaluated on it. A proposer that gives such a task stops the run, so one whose tasks are
            what a policy says leaves them out.
    """

    seed: int
    update: int
    played: Sequence[Group] = ()
    pool: Sequence[PooledTask] = ()
    held_out: Callable[[Task], bool] = lambda task: False

    def rng(self, *names: Json) -> Random:
        """The chance of an update, a function of (seed, update) and these names."""
        return derive_rng("proposer", self.seed, self.update, *names)


Proposer: TypeAlias = Callable[[ProposerContext], Sequence[TaskProposal]]
"""From what was played to tasks; pure, with all chance from the context. A task that is in the pool already may be given again."""


class ProposedTasks:
    """The pool: tasks that proposers made, with the update that made them and by whom; checkpoints keep it.

    Which tasks an update is shown follows from its number alone, however many updates are played ahead: those that were made before
    update u − ``staleness``, and no more than ``keep`` of their proposer's updates earlier.

    >>> pool = ProposedTasks({"mine": 2})
    >>> for update in range(4):
    ...     pool.add(update, [PooledTask(Task("calc", f"task {update}"), "mine", update)])
    >>> [one.task.prompt for one in pool.known(4)], [one.task.prompt for one in pool.known(5)]
    (['task 2', 'task 3'], ['task 3'])
    >>> again = ProposedTasks({"mine": 2})
    >>> again.restore(pool.state())
    >>> again.known(4) == pool.known(4)
    True

    Args:
        keep: by proposer, for how many later updates its tasks are kept.
        staleness: how many updates are played ahead of learning.
    """

    def __init__(self, keep: Mapping[str, int], staleness: int = 0) -> None:
        self._keep, self._staleness = dict(keep), staleness
        self._tasks: list[PooledTask] = []

    def known(self, update: int) -> tuple[PooledTask, ...]:
        """The tasks that an update is shown, oldest first."""
        until = update - self._staleness
        return tuple(one for one in self._tasks if self._from(one, until) <= one.update < until)

    def add(self, update: int, made: Iterable[PooledTask]) -> None:
        """Keep what was made in an update, once it was learned; a task that is there already stays as old as it is."""
        ids = {one.task.id for one in self._tasks}
        for one in made:
            if one.task.id not in ids and self._keep.get(one.by):
                ids.add(one.task.id)
                self._tasks.append(one)
        until = update + 1 - self._staleness
        self._tasks = [one for one in self._tasks if one.update >= self._from(one, until)]

    def _from(self, one: PooledTask, until: int) -> int:
        return until - self._keep.get(one.by, 0)

    def __len__(self) -> int:
        return len(self._tasks)

    def state(self) -> PartState:
        """Return all tasks, as data."""
        rows: list[Json] = [
            {"task": one.task.to_json(), "by": one.by, "update": one.update} for one in self._tasks
        ]
        return PartState({"tasks": rows} if rows else {})

    def restore(self, state: PartState) -> None:
        """Go on from :meth:`state`."""
        rows: Any = state.numbers.get("tasks", [])
        self._tasks = [
            PooledTask(Task.from_json(row["task"]), str(row["by"]), int(row["update"])) for row in rows
        ]


def tasks_within(task: Task) -> Iterator[Task]:
    """The task itself and every task that its options hold, as those of a world around another do.

    >>> inner = Task("calc", "2 + 2")
    >>> [one.prompt for one in tasks_within(Task("told", "a hint", {"around": [inner.to_json()]}))]
    ['a hint', '2 + 2']
    """
    yield task
    waiting: list[Json] = [*task.options.values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            held = cast("Mapping[str, Json]", value)
            if held.keys() == _KEYS:
                yield from tasks_within(Task.from_json(held))
            else:
                waiting += held.values()
        elif isinstance(value, list):
            waiting += cast("list[Json]", value)


_KEYS = Task("", "").to_json().keys()


def proposals_of(name: str, proposer: Proposer, see: ProposerContext) -> list[TaskProposal]:
    """Return what a proposer gives.

    Raises:
        RunError: it gives something else than proposals, or none that could be played.
    """
    found = list(proposer(see))
    for one in found:
        right = isinstance(one, TaskProposal) and isinstance(one.task, Task)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not right or one.episodes < 0 or not one.weight > 0:
            raise RunError(
                f"proposer {name!r} gives {one!r:.120} in update {see.update + 1}.",
                "Give TaskProposal(task, episodes, weight), with at least 0 episodes (0: rollout.group_size) and a weight above 0.",
            )
    return found
