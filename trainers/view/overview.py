"""The first page: everything that was found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.errors import TurnwiseError
from turnwise.trainers.report.records import Metrics, read_metrics
from turnwise.trainers.view.places import (
    Activity,
    ModelPlace,
    ViewedPlace,
    activity,
    models_of,
    read_asked,
    read_evaluation,
    read_recipe,
)


class RunRow(NamedTuple):
    """A run in the list of all."""

    place: ViewedPlace
    activity: Activity
    suite: str
    credit: str
    updates: int
    of: str
    success: float | None
    dev: float | None
    spark: Markup


class EvaluationLine(NamedTuple):
    """An evaluation in the list of all."""

    place: ViewedPlace
    activity: Activity
    suite: str
    split: str
    policy: str
    figures: Evaluation | None


class OverviewShown(NamedTuple):
    """Everything that was found."""

    folders: tuple[str, ...]
    words: str
    runs: tuple[RunRow, ...]
    evaluations: tuple[EvaluationLine, ...]
    campaigns: tuple[ViewedPlace, ...]
    logs: tuple[ViewedPlace, ...]
    models: tuple[ModelPlace, ...]

    @property
    def live(self) -> bool:
        """True if anything is being written."""
        return any(row.activity.live for row in (*self.runs, *self.evaluations))


def overview(folders: Sequence[Path], places: Sequence[ViewedPlace], words: str) -> OverviewShown:
    """The first page; with ``words`` only what has them in its name, suite or policy."""
    runs = [_run_row(place) for place in places if place.kind == "run"]
    played = [evaluation_line(place) for place in places if place.kind == "evaluation"]
    wanted = words.casefold().split()

    def has(*texts: str) -> bool:
        return all(any(word in text.casefold() for text in texts) for word in wanted)

    return OverviewShown(
        tuple(str(folder) for folder in folders),
        words,
        tuple(row for row in runs if has(row.place.name, row.suite, row.credit)),
        tuple(row for row in played if has(row.place.name, row.suite, row.policy)),
        tuple(place for place in places if place.kind == "campaign" and has(place.name)),
        tuple(place for place in places if place.kind == "log" and has(place.name)),
        tuple(models_of(places)),
    )


def _run_row(place: ViewedPlace) -> RunRow:
    _, facts = read_recipe(place)
    rows = _metrics(place)
    rl = [row for row in rows if row.phase == "rl"]
    training = [(row.update, row.values["success"]) for row in rl if "success" in row.values]
    dev = [row.values["dev_success"] for row in rl if "dev_success" in row.values]
    spark = Markup("")
    if len(training) > 1:
        spark = _spark([y for _, y in training])
    return RunRow(
        place,
        activity(place),
        facts.get("suite", ""),
        facts.get("credit", ""),
        rl[-1].update if rl else 0,
        facts.get("updates", ""),
        training[-1][1] if training else None,
        dev[-1] if dev else None,
        spark,
    )


def _spark(values: Sequence[float]) -> Markup:
    """A small curve of shares, without axes."""
    n = max(1, len(values) - 1)
    line = "L".join(f"{round(120 * i / n, 1)} {round(22 - 20 * value, 1)}" for i, value in enumerate(values))
    return Markup('<svg class="chart spark" viewBox="0 0 120 24" width="120" height="24" aria-hidden="true"><path class="grid" d="M0 22H120"/><path class="line first" d="M{}"/></svg>').format(line)  # fmt: skip


def evaluation_line(place: ViewedPlace) -> EvaluationLine:
    """An evaluation in short: what was asked for until its figures are there."""
    figures, asked = read_evaluation(place), read_asked(place)
    return EvaluationLine(
        place,
        activity(place),
        figures.suite if figures else asked.suite,
        figures.split if figures else asked.split,
        figures.policy if figures else asked.policy,
        figures,
    )


def _metrics(place: ViewedPlace) -> tuple[Metrics, ...]:
    try:
        return read_metrics(place.path, [])
    except TurnwiseError:  # its own page says so; the list shows what else there is
        return ()
