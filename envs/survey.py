"""``turnwise survey``: the scripted solution on many tasks of suites, and their splits beside each other.

What ``turnwise check`` samples, at the size that a claim about a suite needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from turnwise.envs.registry import get_suite, make, suite_tasks, suites
from turnwise.envs.walks import walk
from turnwise.errors import NotFoundError, TurnwiseError
from turnwise.tasks.core import Split, Suite


class Survey(NamedTuple):
    """What was found about a suite."""

    suite: str
    played: int  # tasks of all splits on which the scripted solution was played
    gold: float  # its mean score
    worst: float  # its lowest score
    turns: tuple[int, int]  # of the scripted solution: fewest and most
    compared: int  # tasks of all splits that were compared
    different: int  # of them with contents of their own
    shared: int  # that stand in more than one split
    seconds: float  # processor time


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


def survey(suite: Suite, *, gold: int = 1000, tasks: int = 10_000) -> Survey:
    """Play the scripted solution on ``gold`` tasks and compare ``tasks`` of them, each a third from every split.

    Raises:
        TurnwiseError: there are fewer tasks than splits.
    """
    if min(gold, tasks) < len(Split):
        raise TurnwiseError(f"{min(gold, tasks)} tasks do not reach every split.", "Ask for 3 or more.")
    started = time.process_time()
    env = make(suite.env)
    walks = [
        walk(env, task, "gold", seed=seed)
        for share, split in _shares(gold)
        for seed, task in enumerate(suite_tasks(suite, split, share))
    ]
    env.close()
    of = {split: {task.id for task in suite_tasks(suite, split, share)} for share, split in _shares(tasks)}
    every = set().union(*of.values())
    scores, turns = [w.score for w in walks], [len(w.steps) for w in walks]
    return Survey(
        suite.name,
        len(walks),
        sum(scores) / len(scores),
        min(scores),
        (min(turns), max(turns)),
        tasks,
        len(every),
        sum(map(len, of.values())) - len(every),
        round(time.process_time() - started, 1),
    )


def _shares(n: int) -> Iterator[tuple[int, Split]]:
    """``n`` cut into thirds, the first splits one larger where it does not divide."""
    for place, split in enumerate(Split):
        yield (n + 2 - place) // 3, split
