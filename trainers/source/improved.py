"""MBRCSL's rule of what is learned: episodes that are better than the best of those that were stored."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from turnwise.agents.core import Episode
from turnwise.agents.log.episode_log import LogReader
from turnwise.errors import RecipeError, RunError
from turnwise.registry import component
from turnwise.trainers.source.core import SourceContext, SourceDraw, by_agent
from turnwise.trainers.source.stored import draw_groups, required_path, stored_groups

BestReturns: TypeAlias = Mapping[tuple[str, str], float]
"""(task, agent) → the greatest return."""


@component("source", "improved", paper="2310.19308")
class Improved:
    """`stored` episodes whose return is above that of every episode of another log, ``over``, on the same task.

    MBRCSL (Zhou et al. 2023) plays in a model of the world that was learned from stored episodes, keeps what is better than the
    best of these, strictly, and imitates it: no backup of values, which need not agree with any policy, is asked to join the good
    parts of several episodes. Its data are of one task; ours compares task by task, agent by agent, and tasks that ``over`` lacks
    are left out. Left out too: the learned model, since worlds are played themselves here (`turnwise eval SUITE --split train
    --out FOLDER`), and the condition on the return. In a random world a return above the best may be luck, which is then imitated as skill.

    Worked by hand: of returns 0.5, 0.9, 0.7 and 0.8 over 0.7, 0.9 and 0.8 are kept.

    >>> [x for x in (0.5, 0.9, 0.7, 0.8) if is_above(x, ("a task", "agent"), {("a task", "agent"): 0.7})]
    [0.9, 0.8]
    >>> import asyncio
    >>> from turnwise.trainers.source.toy import example_context, example_log, worse_log
    >>> source = Improved(path=str(example_log()), over=str(worse_log()))
    >>> len(asyncio.run(source(example_context("shop/quick"), 0)).shown)
    4

    Raises:
        RecipeError: a path is missing.
        RunError: when it is asked: no episode is better, or the logs share no task.
    """

    def __init__(self, *, path: str = "", over: str = "", groups: int = 4) -> None:
        if not over:
            raise RecipeError(
                "source 'improved' has no log to compare with.",
                "Name the episodes that are to be beaten: over: …",
            )
        self.path, self.over, self.groups = required_path("improved", path), over, groups

    def log_path(self) -> str:
        return self.path

    async def __call__(self, see: SourceContext, update: int) -> SourceDraw:
        best = _best_of(str(Path(self.over).resolve()))
        groups = [
            [
                one
                for episode in group
                for one in by_agent(episode)
                if is_above(one.trajectory.total_reward, _place(one), best)
            ]
            for group in stored_groups(see, self.path, solved=False)
        ]
        better = [group for group in groups if group]
        if not better:
            raise RunError(
                f"No episode of {self.path} is above the best of {self.over} on the same task.",
                "Play the tasks of that log with a better policy, or use source stored.",
            )
        return SourceDraw(
            shown=[one for group in draw_groups(see, update, better, self.groups) for one in group]
        )


def is_above(total: float, place: tuple[str, str], best: BestReturns) -> bool:
    """Say whether a return beats the best that is known of its task and agent; False where nothing is known."""
    return total > best.get(place, math.inf)


def _place(episode: Episode) -> tuple[str, str]:
    return episode.task.id, episode.trajectory.agent


@functools.lru_cache(maxsize=4)
def _best_of(path: str) -> BestReturns:
    """The greatest returns of the episodes of a log that count."""
    best: dict[tuple[str, str], float] = defaultdict(lambda: -math.inf)
    for record in LogReader(Path(path)):
        for one in by_agent(record.episode) if record.episode.outcome.counts else ():
            best[_place(one)] = max(best[_place(one)], one.trajectory.total_reward)
    return dict(best)
