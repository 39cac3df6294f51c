"""The difference by difficulty: tasks sorted by what their options say, such as how many objects there are."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from turnwise.agents.evaluation.statistics import Estimate, Interval, student_mean, within
from turnwise.envs.registry import get_suite, suite_tasks
from turnwise.errors import NotFoundError
from turnwise.tasks.core import Json, Split, Task

MOST_LEVELS = 8
"""A number with more values than these is cut into three parts; a text with more of them is no knob."""
FEWEST_TASKS = 5
"""A knob is shown if two of its levels have so many tasks."""
WIDEST = 1000
"""Numbers that differ by more than this are names (seeds, identifiers) and no knobs."""
DEEPEST, SHORT = 3, 3
"""Depth to which options are looked into, and length that a list may have whose items are."""

Level: TypeAlias = str
Levels: TypeAlias = Mapping[str, Mapping[str, Level]]  # knob → task id → level


class KnobDifference(NamedTuple):
    """Result for one level of a knob: mean difference over its tasks, with Student's interval over them."""

    knob: str
    level: Level
    tasks: int
    before: float
    after: float
    difference: float
    interval: Interval


def differences_by_knob(
    levels: Levels, before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]]
) -> tuple[KnobDifference, ...]:
    """Every level of every knob, in the order of the options."""
    found: list[KnobDifference] = []
    for knob, level_of in levels.items():
        for level in dict.fromkeys(level_of.values()):
            tasks = [
                task for task, its in level_of.items() if its == level and task in before and task in after
            ]
            if not tasks:
                continue
            a, b = ([statistics.fmean(side[task]) for task in tasks] for side in (before, after))
            mean = _mean([y - x for x, y in zip(a, b, strict=True)])
            sides = statistics.fmean(a), statistics.fmean(b)
            found.append(KnobDifference(knob, level, len(tasks), *sides, mean.mean, mean.interval))
    return tuple(found)


def _mean(differences: Sequence[float]) -> Estimate:
    """Student's, within what success can differ by; unknown where no task differs from another."""
    found = student_mean(differences)
    if len(set(differences)) < 2:
        return found._replace(interval=Interval(-math.inf, math.inf))
    return found._replace(interval=within(found.interval, -1.0, 1.0))


def levels_of(name: str, split: str, ids: Collection[str]) -> tuple[Levels, str]:
    """Each knob's level of these tasks, and what is missing; tasks are made again, for results hold their ids alone.

    What the suite itself names as a knob comes first.
    """
    try:
        suite = get_suite(name)
        made = suite_tasks(suite, Split(split), 2 * len(ids) + 10)
    except NotFoundError as error:
        return {}, f"By knob: {error.cause.rstrip('.')}; name its file with --env"
    wanted, tasks = set(ids), list[Task]()
    for task in made:
        if task.id in wanted:
            wanted.discard(task.id)
            tasks.append(task)
        if not wanted:
            break
    missing = f"By knob: {len(wanted)} of {len(ids)} tasks are not what {name} makes today" if wanted else ""
    levels = _knobs({task.id: dict(_leaves(_described(task), "")) for task in tasks})
    named = sorted(levels, key=lambda knob: knob.rpartition(".")[2].partition(",")[0] not in suite.knobs)
    return {knob: levels[knob] for knob in named}, missing


def _described(task: Task) -> dict[str, Json]:
    length = {"solution": task.gold} if isinstance(task.gold, list) else {}
    return {**task.options, **length}


def _leaves(value: Json, name: str, depth: int = 0) -> Iterator[tuple[str, Json]]:
    """
    >>> dict(_leaves({"goals": [["clean", "mug"]], "size": {"rooms": 2}}, ""))
    {'goals, how many': 1, 'goals[0][0]': 'clean', 'goals[0][1]': 'mug', 'size.rooms': 2}
    """
    if depth > DEEPEST:
        return
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from _leaves(inside, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, (list, tuple)):
        if depth == 1:
            yield f"{name}, how many", len(value)
        for place, inside in enumerate(value if len(value) <= SHORT else ()):
            yield from _leaves(inside, f"{name}[{place}]", depth + 1)
    elif value is None or isinstance(value, (bool, int, float, str)):
        yield name, value


def _knobs(options: Mapping[str, Mapping[str, Json]]) -> Levels:
    names = dict.fromkeys(name for leaves in options.values() for name in leaves)
    levels = {name: _levels({task: leaves.get(name) for task, leaves in options.items()}) for name in names}
    return {name: level_of for name, level_of in levels.items() if _tells(level_of)}


def _tells(level_of: Mapping[str, Level]) -> bool:
    return sum(count >= FEWEST_TASKS for count in Counter(level_of.values()).values()) > 1


def _levels(values: Mapping[str, Json]) -> dict[str, Level]:
    """
    >>> _levels({"a": 2, "b": 1, "c": 2})
    {'b': '1', 'a': '2', 'c': '2'}
    >>> list(dict.fromkeys(_levels({str(i): i for i in range(30)}).values()))
    ['0 … 9', '10 … 19', '20 … 29']
    """
    numbers = {
        task: v for task, v in values.items() if isinstance(v, (int, float)) and not isinstance(v, bool)
    }
    if len(numbers) < len(values):
        texts = {task: str(value) for task, value in values.items()}
        if len(set(texts.values())) > MOST_LEVELS:
            return {}
        return dict(sorted(texts.items(), key=lambda item: item[1]))
    ordered = dict(sorted(numbers.items(), key=lambda item: item[1]))
    if len(set(ordered.values())) <= MOST_LEVELS:
        return {task: f"{value:g}" for task, value in ordered.items()}
    if max(ordered.values()) - min(ordered.values()) > WIDEST:
        return {}
    cuts = np.quantile(list(ordered.values()), (1 / 3, 2 / 3))
    parts = {task: int(np.searchsorted(cuts, value)) for task, value in ordered.items()}
    inside = {part: [v for task, v in ordered.items() if parts[task] == part] for part in set(parts.values())}
    return {task: f"{min(inside[p]):g} … {max(inside[p]):g}" for task, p in parts.items()}
