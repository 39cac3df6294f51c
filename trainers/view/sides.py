"""Two places beside each other on one task, and several compared as `turnwise compare` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from turnwise.agents.evaluation.statistics import Interval
from turnwise.agents.log.episode_log import read_record
from turnwise.errors import TurnwiseError
from turnwise.trainers.compare.comparison import Comparison, Contrast
from turnwise.trainers.compare.comparison import compare as compare_sources
from turnwise.trainers.view.drawing import forest
from turnwise.trainers.view.index import LogIndex
from turnwise.trainers.view.places import ViewedPlace
from turnwise.trainers.view.selection import EpisodeRow, outcomes_by_task
from turnwise.trainers.view.told import EpisodeShown, show_episode, tokenizer_of

_TASKS = 200


class MeasureShown(NamedTuple):
    """A measure of a comparison, with sentences and a picture."""

    name: str
    sentences: tuple[str, ...]
    picture: Markup


class ComparisonShown(NamedTuple):
    """The page of a comparison."""

    comparison: Comparison
    measures: tuple[MeasureShown, ...]
    places: tuple[ViewedPlace, ...]


def compared(places: Sequence[ViewedPlace], *, allow_unlike: bool = False) -> ComparisonShown:
    """The chosen places compared with the first.

    Raises:
        TurnwiseError: fewer than two were chosen, or they cannot be compared.
    """
    if len(places) < 2:
        raise TurnwiseError(
            f"{len(places)} chosen: nothing to compare with.", "Choose two or more on the first page."
        )
    from turnwise.trainers.compare.table import sentence

    found = compare_sources(*(place.path for place in places), allow_unlike=allow_unlike)
    measures = [
        MeasureShown(
            str(one.measure),
            tuple(sentence(contrast, len(one.contrasts)).plain for contrast in one.contrasts),
            forest([_row(contrast) for contrast in one.contrasts], label="Differences in success, in points"),
        )
        for one in found.measures
    ]
    return ComparisonShown(found, tuple(measures), tuple(places))


def _row(contrast: Contrast) -> tuple[str, float, Interval]:
    low, high = contrast.difference.interval
    name = contrast.other.rsplit("/", 1)[-1]
    return name, 100 * contrast.difference.difference, Interval(100 * low, 100 * high)


class TaskSide(NamedTuple):
    """The episodes of a task on one side, how many solved it, and their mean return."""

    rows: tuple[EpisodeRow, ...]
    solved: int
    total: float


class TaskRow(NamedTuple):
    """A task that both played: what it asks, and the episodes of each."""

    task: str
    prompt: str
    left: tuple[EpisodeRow, ...]
    right: tuple[EpisodeRow, ...]

    @property
    def sides(self) -> tuple[TaskSide, TaskSide]:
        return _side(self.left), _side(self.right)

    @property
    def differs(self) -> bool:
        """True if one of them solved it more often."""
        return _share(self.left) != _share(self.right)


class SideShown(NamedTuple):
    """The page of two places: the tasks that both played, and one of them turn by turn."""

    places: tuple[ViewedPlace, ViewedPlace]
    shared: int
    differ: int
    show: str
    rows: tuple[TaskRow, ...]
    task: TaskRow | None
    episodes: tuple[EpisodeShown, ...]


def side_by_side(
    places: tuple[ViewedPlace, ViewedPlace], indexes: tuple[LogIndex, LogIndex], task: str, show: str
) -> SideShown:
    """The tasks that two places share; with ``task`` their first episodes of it.

    Raises:
        TurnwiseError: they share none, or not this one.
    """
    left, right = (outcomes_by_task(index) for index in indexes)
    rows = [TaskRow(name, rows[0].prompt, rows, right[name]) for name, rows in left.items() if name in right]
    if not rows:
        raise TurnwiseError(
            f"{places[0].name} and {places[1].name} share no task.",
            "Evaluate both on the same suite, split and seed.",
        )
    differing = [row for row in rows if row.differs]
    chosen = next((row for row in rows if row.task == task), None)
    if task and chosen is None:
        raise TurnwiseError(f"They do not share the task {task!r:.40}.", "Choose one of the list.")
    episodes: list[EpisodeShown] = []
    if chosen is not None:
        for place, index, its in zip(places, indexes, (chosen.left, chosen.right), strict=True):
            record = read_record(place.log, index.place(its[0].id))
            folder = place.path if place.path.is_dir() else place.path.parent
            episodes.append(show_episode(record, tokenizer_of(folder, its[0].policy)))
    shown = rows if show == "all" else differing
    return SideShown(places, len(rows), len(differing), show, tuple(shown[:_TASKS]), chosen, tuple(episodes))


def _side(rows: tuple[EpisodeRow, ...]) -> TaskSide:
    solved = sum(row.ended == "solved" for row in rows)
    return TaskSide(rows, solved, sum(row.total for row in rows) / len(rows))


def _share(rows: Sequence[EpisodeRow]) -> float:
    return sum(row.ended == "solved" for row in rows) / len(rows)
