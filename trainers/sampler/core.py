"""Samplers, which choose the tasks of each update and may remember how they went.

A sampler is a class that is made with a :class:`SamplerSetup`; its keyword-only parameters are its options::

    @component("sampler", "mine")
    class Mine(Sampler):
        def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]: ...

It may name the suite of a task and change its knobs, ask for more episodes of what was just played, hear of dev success and
report figures. All its chance comes from (seed, update), and what it remembers is in checkpoints, so that a resumed run is the same run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from turnwise.tasks.core import Json, Task
from turnwise.trainers.core import Group, PartState
from turnwise.trainers.sampler.mixture import Mixture


@dataclass(frozen=True)
class GroupRequest:
    """A task that an update is to play.

    Attributes:
        suite: the name of the suite it is from.
        index: its number among the training tasks of this suite.
        task: the task itself.
        episodes: how often it is played.
        weight: of the task in the update, whatever the number of its episodes; 1 for one task of several.
        visits: in how many earlier updates it was played.
        knobs: those of the suite's that are otherwise in this task.
        by: the proposer that made the task; empty: a sampler chose it.
    """

    suite: str
    index: int
    task: Task
    episodes: int
    weight: float = 1.0
    visits: int = 0
    knobs: Mapping[str, Json] = field(default_factory=dict[str, Json])
    by: str = ""


class SeenGroup(NamedTuple):
    """Outcome of a request.

    Attributes:
        request: as it was planned.
        episodes: those that count.
        advantage: mean absolute advantage of the turns that were trained on; 0 where the filter dropped them.
        advantages: of each trajectory that was trained on or dropped, the mean over its sampled tokens, with its sign.
    """

    request: GroupRequest
    episodes: Group
    advantage: float
    advantages: Sequence[float] = ()

    @property
    def successes(self) -> int:
        return sum(episode.success for episode in self.episodes)

    @property
    def rate(self) -> float:
        """The share of its episodes that succeeded; 0 where none counts."""
        return self.successes / len(self.episodes) if self.episodes else 0.0


@dataclass(frozen=True)
class SamplerSetup:
    """Inputs with which a sampler is made.

    Attributes:
        mixture: the suites with their weights.
        seed: the run's.
        groups: tasks that are played at a time.
        group_size: episodes of a task, unless the sampler says otherwise.
        most: the most tasks that an update may play; ``groups`` without refill.
        since: the update with which the run, or its present phase, begins.
        before: the most tasks that the updates before that one may have played.
    """

    mixture: Mixture
    seed: int
    groups: int
    group_size: int
    most: int
    since: int = 0
    before: int = 0

    def first_new(self, update: int) -> int:
        """The first of the ``most`` training tasks that are new to an update: no earlier one may play them, whatever its phase.

        >>> from dataclasses import replace
        >>> replace(example_setup(most=8), since=3, before=5).first_new(4)  # 5 tasks in three updates, then 8
        13
        """
        return self.before + (update - self.since) * self.most

    @property
    def suites(self) -> list[str]:
        """The names of the mixture's suites."""
        return [suite.name for suite, _ in self.mixture.shares]

    def request(
        self,
        index: int,
        *,
        suite: str = "",
        knobs: Mapping[str, Json] | None = None,
        episodes: int = 0,
        weight: float = 1.0,
        visits: int = 0,
    ) -> GroupRequest:
        """The request for training task ``index`` of a suite.

        Args:
            index: of the task. All from :meth:`first_new` on are new to an update, whatever suite they are of.
            suite: one of the mixture's; the one that it draws for this index, by its shares, if empty.
            knobs: of the suite's that are to be otherwise; the task is another one than without.
            episodes: of the task; ``group_size`` if 0.
            weight: of the task in the update.
            visits: in earlier updates.
        """
        name = suite or self.mixture.suite_of(index).name
        task = self.mixture.task(index, name, knobs)
        return GroupRequest(name, index, task, episodes or self.group_size, weight, visits, {**(knobs or {})})


class Sampler:
    """Chooses the tasks of each update; subclasses replace what applies to them.

    Attributes:
        returns: a task may be played in several updates.
        repeats: and in several groups of one update.
        by_success: it chooses by how often the policy succeeded, which must be one policy's.
        adds: it asks for more episodes of tasks that were just played (:meth:`again`).
        unbiased: the tasks that it plans are as likely, weights included, as the mixture's shares say, whatever was seen.
        over: the distribution of tasks that the objective is a mean over, in words.
    """

    returns: ClassVar[bool] = False
    repeats: ClassVar[bool] = False
    by_success: ClassVar[bool] = False
    adds: ClassVar[bool] = False
    unbiased: ClassVar[bool] = False
    over: ClassVar[str] = "the tasks that it plans, each with the weight that it gives"

    def __init__(self, setup: SamplerSetup) -> None:
        self.setup = setup

    @property
    def sizes(self) -> frozenset[int]:
        """The numbers of episodes that it may ask for."""
        return frozenset({self.setup.group_size})

    def plan(self, update: int, played: int, groups: int) -> list[GroupRequest]:
        """The next ``groups`` tasks of an update (counted from 0) of which ``played`` tasks were planned before.

        Planned in several calls, an update has the tasks that it would have in one, in an order that says nothing of
        them: the estimate of a refilled update (:mod:`turnwise.trainers.sampler.refill`) rests on that.
        """
        raise NotImplementedError

    def again(self, update: int, groups: Sequence[SeenGroup]) -> list[GroupRequest]:
        """Say how each group that was just played is wanted: the same task, with more episodes or another weight.

        Asked where it ``adds``, again and again until it adds none, before anything is learned (advantages are not known). It
        remembers nothing of it, so that learning from the log asks the same.
        """
        return [group.request for group in groups]

    def seen(self, update: int, groups: Sequence[SeenGroup]) -> None:
        """Told after the update what came of its requests."""

    def evaluated(self, dev_success: float) -> None:
        """Told the success on dev tasks, after the update after which it was measured."""

    def figures(self) -> Mapping[str, float]:
        """Return its figures after an update, by name; the run's metrics have them as ``SAMPLER/NAME``."""
        return {}

    def state(self) -> PartState:
        """Return what a checkpoint keeps of it."""
        return PartState()

    def restore(self, state: PartState) -> None:
        """Go on from :meth:`state`."""


class TaskMemory(NamedTuple):
    """Memory of a task: visits, episodes and successes (older ones may weigh less), the update of the last visit."""

    visits: int
    episodes: float
    successes: float
    last: int

    @property
    def rate(self) -> float:
        """Measured success; 0 where no episode counted."""
        return self.successes / self.episodes if self.episodes else 0.0


NEVER = TaskMemory(0, 0.0, 0.0, -1)


def after_visit(before: TaskMemory, update: int, seen: SeenGroup, keep: float = 1.0) -> TaskMemory:
    """Return what is remembered after a visit; what was counted before weighs ``keep``.

    >>> from turnwise.tasks.core import Task
    >>> visit = SeenGroup(GroupRequest("a", 0, Task("a", "?"), 2), (), 0.0)
    >>> after_visit(TaskMemory(1, 4.0, 2.0, 0), 5, visit, keep=0.5)
    TaskMemory(visits=2, episodes=2.0, successes=1.0, last=5)
    """
    return TaskMemory(
        before.visits + 1,
        keep * before.episodes + len(seen.episodes),
        keep * before.successes + seen.successes,
        update,
    )


def memory_state(memory: Mapping[int, TaskMemory]) -> PartState:
    """For :meth:`Sampler.state`."""
    return PartState({str(index): [*known] for index, known in memory.items()})


def memory_from(state: PartState) -> dict[int, TaskMemory]:
    """For :meth:`Sampler.restore`, by the index of the task in the mixture, which tells its suite."""
    return {
        int(index): TaskMemory(int(n), float(episodes), float(successes), int(last))
        for index, (n, episodes, successes, last) in state.numbers.items()
    }


def example_setup(*, groups: int = 4, group_size: int = 4, most: int = 8, seed: int = 0) -> SamplerSetup:
    """A setup with two small suites: for examples and tests."""
    return SamplerSetup(Mixture({"sort/4": 1.0, "shop/quick": 3.0}, seed), seed, groups, group_size, most)
