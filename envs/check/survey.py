"""``turnwise survey``: the gold policy and trivial baselines on many tasks of suites, and their splits.

What ``turnwise check`` samples, at the size that a claim about a suite needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from turnwise.envs.baselines import TRIVIAL_BASELINES, interval
from turnwise.envs.check.walks import walk
from turnwise.envs.core import AgentEnv
from turnwise.envs.registry import env_class, get_suite, make, suite_task, suites
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Json, Split, Suite, Task


class BaselineMeans(NamedTuple):
    """Means of a trivial baseline on the tasks of a suite."""

    success: float  # share of tasks
    score: float  # mean


class Survey(NamedTuple):
    """Findings about a suite."""

    suite: str
    played: int  # tasks of all splits on which the scripted solution was played, as far as one is known
    gold: float | None  # its mean score; None where no solution is known
    worst: float | None  # its lowest score
    turns: tuple[int, int] | None  # of the scripted solution: fewest and most
    bound: float  # the most that any trivial baseline may succeed at
    best_baseline: float  # the most that one does
    baseline_tasks: int  # that each of them played, of all splits
    baselines: Mapping[str, BaselineMeans]
    compared: int  # tasks of all splits that were compared
    different: int  # of them with contents of their own
    shared: int  # that stand in more than one split
    seconds: float  # processor time

    @property
    def ok(self) -> bool:
        """Gold solves every task whose solution is known, baselines may lie under their bound (95 %), splits share nothing."""
        low, _ = interval(round(self.best_baseline * self.baseline_tasks), self.baseline_tasks)
        return (self.worst is None or self.worst >= 1.0) and low <= self.bound and not self.shared

    def to_json(self) -> dict[str, Json]:
        return {
            **self._asdict(),
            "baselines": {agent: got._asdict() for agent, got in self.baselines.items()},
        }


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


def survey(suite: Suite, *, gold: int = 1000, baselines: int = 1000, tasks: int = 10_000) -> Survey:
    """Play the gold script on ``gold`` tasks, every trivial baseline on ``baselines``, and compare ``tasks``.

    Of each number every split has a third, from its first task on.

    Raises:
        TurnwiseError: there are fewer tasks than splits.
    """
    if min(gold, baselines, tasks) < len(Split):
        raise TurnwiseError(
            f"{min(gold, baselines, tasks)} tasks do not reach every split.", "Ask for 3 or more."
        )
    started = time.process_time()
    env, cls = make(suite.env), env_class(suite.env)
    golds = list[tuple[float, int]]()  # score and turns
    played: dict[str, list[BaselineMeans]] = {agent: [] for agent in TRIVIAL_BASELINES}
    contents: dict[Split, set[str]] = {split: set() for split in Split}
    for split, index, task in _drawn(suite, max(gold, baselines, tasks)):
        if index < _share(gold, split) and env.knows_gold(task):
            walked = walk(env, task, "gold", seed=index)
            golds.append((walked.score, len(walked.steps)))
        if index < _share(baselines, split):
            for agent, got in played.items():
                got.append(_play(env, task, agent, index))
        if index < _share(tasks, split):
            contents[split].add(task.id)
    env.close()
    means = {
        agent: BaselineMeans(*(sum(each) / baselines for each in zip(*got, strict=True)))
        for agent, got in played.items()
    }
    scores, turns = [score for score, _ in golds], [n for _, n in golds]
    every = set[str]().union(*contents.values())
    return Survey(
        suite.name,
        played=len(golds),
        gold=sum(scores) / len(golds) if golds else None,
        worst=min(scores, default=None),
        turns=(min(turns), max(turns)) if golds else None,
        bound=cls.max_trivial_scores.get(suite.name, cls.max_trivial_score),
        best_baseline=max(mean.success for mean in means.values()),
        baseline_tasks=baselines,
        baselines=means,
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


def _play(env: AgentEnv[Any], task: Task, agent: str, seed: int) -> BaselineMeans:
    walked = walk(env, task, agent, seed=seed)
    return BaselineMeans(float(walked.success), walked.score)
