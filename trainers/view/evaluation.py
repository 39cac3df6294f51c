"""The page of an evaluation, or of a log that stands by itself."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.trainers.view.index import IndexProgress, LogIndex
from turnwise.trainers.view.overview import evaluation_line
from turnwise.trainers.view.places import Activity, ViewedPlace
from turnwise.trainers.view.selection import EpisodeRow, Selection, SelectionTally, choices, find


class EndShown(NamedTuple):
    """Number and share of episodes that ended in one way."""

    name: str
    n: int
    share: float


class EvaluationShown(NamedTuple):
    """The page of an evaluation, or of a log that stands by itself."""

    place: ViewedPlace
    activity: Activity
    suite: str
    split: str
    policy: str
    figures: Evaluation | None
    ends: tuple[EndShown, ...]
    outcomes: tuple[EndShown, ...]
    progress: IndexProgress
    tally: SelectionTally
    lost: tuple[EpisodeRow, ...]


def evaluation_shown(place: ViewedPlace, index: LogIndex) -> EvaluationShown:
    """An evaluation as it is now."""
    line, known, counted = evaluation_line(place), choices(index), find(index, Selection(), most=1).tally
    total = sum(n for _, n in known.outcomes) or 1
    return EvaluationShown(
        place,
        line.activity,
        line.suite,
        line.split,
        line.policy,
        line.figures,
        tuple(EndShown(name, n, n / total) for name, n in known.ends),
        tuple(EndShown(name, n, n / total) for name, n in known.outcomes if name not in ("ok", "limit")),
        index.progress(),
        counted,
        find(index, Selection(ended="failed", sort="score"), most=8).rows,
    )
