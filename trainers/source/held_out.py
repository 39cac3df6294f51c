"""Tasks from which a run may not learn, because it is evaluated on them, and logs that hold such."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.agents.log.episode_log import LogReader
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import RunError
from turnwise.tasks.core import Split, Task


class TaskOfSplit(NamedTuple):
    """Suite and split to which a task belongs."""

    suite: str
    split: Split


@dataclass(frozen=True)
class HeldOut:
    """The tasks that a run's own evaluations play, from which nothing may be learned.

    >>> from turnwise.envs.registry import get_suite, suite_task
    >>> held_out, suite = HeldOut(("calc/easy",), dev=2, test=3), get_suite("calc/easy")
    >>> held_out.owner_of(suite_task(suite, Split.TEST, 2))
    TaskOfSplit(suite='calc/easy', split=<Split.TEST: 'test'>)
    >>> held_out.owner_of(suite_task(suite, Split.TRAIN, 2)) is None
    True

    Attributes:
        suites: their names.
        dev: of each suite's dev split so many tasks.
        test: of each suite's test split so many.
    """

    suites: tuple[str, ...]
    dev: int
    test: int

    def owner_of(self, task: Task) -> TaskOfSplit | None:
        """The suite and the split of a task that is held out; None of any other."""
        return _held_out(self, task.env).get(task.id)


@functools.lru_cache(maxsize=8)
def _held_out(held: HeldOut, env: str) -> Mapping[str, TaskOfSplit]:
    """By id, of one environment; a published list is the same tasks in each split, so that none of them could be held out."""
    return {
        task.id: TaskOfSplit(name, split)
        for name in held.suites
        if get_suite(name).env == env and not get_suite(name).listed
        for split, count in ((Split.DEV, held.dev), (Split.TEST, held.test))
        for task in suite_tasks(get_suite(name), split, count)
    }


def split_of_evaluation(path: str) -> TaskOfSplit | None:
    """The suite and the split that an evaluation beside a log says it played; None where none is there.

    >>> split_of_evaluation("no/such/episodes.jsonl.zst") is None
    True
    """
    asked = Path(path).parent / "asked.json"
    try:
        said: Any = json.loads(asked.read_text("utf-8"))
        return TaskOfSplit(str(said["suite"]), Split(said["split"]))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
    ):  # no evaluation, or one of another kind: tasks will tell
        return None


def held_out_remedy(suite: str) -> str:
    """Say how to come by episodes that may be learned from."""
    return f"Play its training tasks, `turnwise eval {suite} --split train --policy … --out …`, and name that log."


def require_learnable(path: str, solved: bool, held_out: HeldOut) -> None:
    """Refuse a log with episodes that would be learned from (``solved``: those that solved their task) on tasks that the run is evaluated on.

    Raises:
        RunError: it has some.
    """
    episodes = [record.episode for record in LogReader(path)]
    learned = [one for one in episodes if one.outcome.counts and (one.success or not solved)]
    held = [owner for one in learned if (owner := held_out.owner_of(one.task)) is not None]
    if held:
        suite, split = held[0]
        raise RunError(
            f"{len(held)} of the {len(learned)} episodes of {path} are of tasks of {suite}'s {split.value} split, on which this "
            "run is evaluated.",
            held_out_remedy(suite),
        )
