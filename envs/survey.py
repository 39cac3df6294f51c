"""``turnwise survey``: the scripted solution and agents without a mind on many tasks of suites, and their splits.

What ``turnwise check`` samples, at the size that a claim about a suite needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from turnwise.envs.core import AgentEnv
from turnwise.envs.floors import FLOORS
from turnwise.envs.registry import env_class, get_suite, make, suite_task, suites
from turnwise.envs.walks import walk
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Json, Split, Suite, Task


class Played(NamedTuple):
    """What an agent without a mind got on the tasks of a suite."""

    success: float  # share of tasks
    score: float  # mean


class Survey(NamedTuple):
    """What was found about a suite."""

    suite: str
    played: int  # tasks of all splits on which the scripted solution was played
    gold: float  # its mean score
    worst: float  # its lowest score
    turns: tuple[int, int]  # of the scripted solution: fewest and most
    bound: float  # the most that any floor agent may succeed at
    floor: float  # the most that one does
    floor_tasks: int  # that each of them played, of all splits
    floors: Mapping[str, Played]
    compared: int  # tasks of all splits that were compared
    different: int  # of them with contents of their own
    shared: int  # that stand in more than one split
    seconds: float  # processor time

    @property
    def ok(self) -> bool:
        """Gold solves every task, floors stay under their bound, splits share nothing."""
        return self.worst >= 1.0 and self.floor <= self.bound and not self.shared

    def to_json(self) -> dict[str, Json]:
        return {**self._asdict(), "floors": {agent: got._asdict() for agent, got in self.floors.items()}}


def suites_of(names: Iterable[str]) -> list[Suite]:
    """Suites by name, by environment (``turnwise/Lab-v0``) or by family (``lab``).

    Raises:
        NotFoundError: a name means none of these.
    """
    every, found = suites(), list[Suite]()
    for name in names:
        own = [s for s in every if name in (s.env, s.name.partition("/")[0])]
        if not own and "/" not in name:
            raise NotFoundError("family of suites", name, {s.name.partition("/")[0] for s in every})
        found += own or [get_suite(name)]
    return found


def survey(suite: Suite, *, gold: int = 1000, floors: int = 1000, tasks: int = 10_000) -> Survey:
    """Play the scripted solution on ``gold`` tasks, every floor agent on ``floors``, and compare ``tasks``.

    Of each number every split has a third, from its first task on.

    Raises:
        TurnwiseError: there are fewer tasks than splits.
    """
    if min(gold, floors, tasks) < len(Split):
        raise TurnwiseError(
            f"{min(gold, floors, tasks)} tasks do not reach every split.", "Ask for 3 or more."
        )
    started = time.process_time()
    env, cls = make(suite.env), env_class(suite.env)
    golds = list[tuple[float, int]]()  # score and turns
    mindless: dict[str, list[Played]] = {agent: [] for agent in FLOORS}
    contents: dict[Split, set[str]] = {split: set() for split in Split}
    for split, index, task in _drawn(suite, max(gold, floors, tasks)):
        if index < _share(gold, split):
            walked = walk(env, task, "gold", seed=index)
            golds.append((walked.score, len(walked.steps)))
        if index < _share(floors, split):
            for agent, got in mindless.items():
                got.append(_play(env, task, agent, index))
        if index < _share(tasks, split):
            contents[split].add(task.id)
    env.close()
    means = {
        agent: Played(*(sum(each) / floors for each in zip(*got, strict=True)))
        for agent, got in mindless.items()
    }
    scores, turns = [score for score, _ in golds], [n for _, n in golds]
    every = set[str]().union(*contents.values())
    return Survey(
        suite.name,
        played=gold,
        gold=sum(scores) / gold,
        worst=min(scores),
        turns=(min(turns), max(turns)),
        bound=cls.floors.get(suite.name, cls.floor),
        floor=max(mean.success for mean in means.values()),
        floor_tasks=floors,
        floors=means,
        compared=tasks,
        different=len(every),
        shared=sum(map(len, contents.values())) - len(every),
        seconds=round(time.process_time() - started, 1),
    )


def _drawn(suite: Suite, n: int) -> Iterator[tuple[Split, int, Task]]:
    """``n`` tasks, a third of them from each split, with their places in it."""
    for split in Split:
        for index in range(_share(n, split)):
            yield split, index, suite_task(suite, split, index)


def _share(n: int, split: Split) -> int:
    """A third of ``n``, the first splits' one larger where it does not divide."""
    return (n + 2 - list(Split).index(split)) // 3


def _play(env: AgentEnv[Any], task: Task, agent: str, seed: int) -> Played:
    walked = walk(env, task, agent, seed=seed)
    return Played(float(walked.success), walked.score)
