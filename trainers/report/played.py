"""Tasks that a run played and their visits, and the success on those that were hard or easy at first."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from turnwise.agents.log.records import Record

SPANS = 5
"""Into so many parts a run's updates are cut, at most."""
BANDS = ("never", "in less than half", "in half or more", "always")
"""Shares of a visit's episodes that solved the task."""


class TaskVisit(NamedTuple):
    """A task in an update: its episodes that count, and those that succeeded."""

    suite: str
    task: str
    update: int
    episodes: int
    solved: int

    @property
    def band(self) -> int:
        """The place in ``BANDS``."""
        if self.solved in (0, self.episodes):
            return 3 if self.solved else 0
        return 1 if 2 * self.solved < self.episodes else 2


class SuiteRow(NamedTuple):
    """A suite: its different tasks, how often they were visited in all, the most visited one, episodes and their success."""

    suite: str
    tasks: int
    visits: int
    most: int
    episodes: int
    success: float


class SpanRow(NamedTuple):
    """Updates from ``first`` to ``last``: their visits, the share of each of ``BANDS``, and the success of their episodes."""

    first: int
    last: int
    visits: int
    shares: tuple[float, ...]
    success: float


class ReturnRow(NamedTuple):
    """Tasks of one band at their first visit that returned: how many, and their later success in each span (None: not played)."""

    band: str
    tasks: int
    later: tuple[float | None, ...]


class PlayedTasks(NamedTuple):
    """The tables of a report; the rows of tasks that returned are none where no task did."""

    suites: tuple[SuiteRow, ...]
    spans: tuple[SpanRow, ...]
    returned: tuple[ReturnRow, ...]


class PlayCounter:
    """Counts episodes of updates, one record at a time."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, int], list[int]] = defaultdict(lambda: [0, 0])

    def see(self, record: Record) -> None:
        """Count an episode; evaluations and what failed are not of interest."""
        episode = record.episode
        if record.update is not None and episode.outcome.counts:
            counts = self._counts[record.suite or episode.task.env, episode.task.id, record.update]
            counts[0] += 1
            counts[1] += episode.success

    def tables(self) -> PlayedTasks | None:
        """Return what was counted; None where nothing was."""
        visits = sorted(
            (TaskVisit(*key, *counts) for key, counts in self._counts.items()),
            key=lambda v: (v.update, v.task),
        )
        if not visits:
            return None
        spans = spans_of(sorted({visit.update for visit in visits}))
        return PlayedTasks(
            tuple(_suite(name, visits) for name in sorted({visit.suite for visit in visits})),
            tuple(_span(first, last, visits) for first, last in spans),
            tuple(_returned(visits, spans)),
        )


def spans_of(updates: Sequence[int], most: int = SPANS) -> list[tuple[int, int]]:
    """The first and the last update of each of at most so many parts of about equal length.

    >>> spans_of([1, 2, 3, 4, 5, 6, 7], most=3), spans_of([4], most=3)
    ([(1, 2), (3, 4), (5, 7)], [(4, 4)])
    """
    parts = min(most, len(updates))
    ends = [len(updates) * i // parts for i in range(parts + 1)]
    return [(updates[a], updates[b - 1]) for a, b in itertools.pairwise(ends)]


def _success(visits: Sequence[TaskVisit]) -> float:
    return sum(v.solved for v in visits) / sum(v.episodes for v in visits)


def _suite(suite: str, visits: Iterable[TaskVisit]) -> SuiteRow:
    theirs = [visit for visit in visits if visit.suite == suite]
    times: dict[str, int] = defaultdict(int)
    for visit in theirs:
        times[visit.task] += 1
    episodes = sum(visit.episodes for visit in theirs)
    return SuiteRow(suite, len(times), len(theirs), max(times.values()), episodes, _success(theirs))


def _span(first: int, last: int, visits: Iterable[TaskVisit]) -> SpanRow:
    theirs = [visit for visit in visits if first <= visit.update <= last]
    bands = [visit.band for visit in theirs]
    shares = tuple(bands.count(band) / len(bands) for band in range(len(BANDS)))
    return SpanRow(first, last, len(theirs), shares, _success(theirs))


def _returned(visits: Iterable[TaskVisit], spans: Sequence[tuple[int, int]]) -> Iterable[ReturnRow]:
    """A row for each band of which a task returned. The first visit, which says the band, is not in its later success."""
    first: dict[tuple[str, str], TaskVisit] = {}
    later: dict[int, list[TaskVisit]] = defaultdict(list)
    for visit in visits:
        known = first.setdefault((visit.suite, visit.task), visit)
        if known is not visit:
            later[known.band].append(visit)
    for band in sorted(later):
        cells = [[v for v in later[band] if a <= v.update <= b] for a, b in spans]
        tasks = {(visit.suite, visit.task) for visit in later[band]}
        yield ReturnRow(BANDS[band], len(tasks), tuple(_success(cell) if cell else None for cell in cells))
