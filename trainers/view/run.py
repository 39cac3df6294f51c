"""The page of a run: its curves, its recipe, its checkpoints, and what it does now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from turnwise.errors import TurnwiseError
from turnwise.trainers.report.episodes import visible
from turnwise.trainers.report.events import EngineNow, live_run
from turnwise.trainers.report.panels import PANELS, Panel, costs_left_out, is_constant
from turnwise.trainers.report.records import EvaluationRow, Metrics, read_evaluations, read_metrics
from turnwise.trainers.view.drawing import Curve, chart, short
from turnwise.trainers.view.index import IndexProgress, LogIndex
from turnwise.trainers.view.places import Activity, ViewedPlace, activity, models_of, read_recipe
from turnwise.trainers.view.selection import Choices, choices

_IN_THE_CURVE = frozenset({"dev_success", "success", "success_unguided"})


class FigureShown(NamedTuple):
    """A curve with its title and newest value."""

    title: str
    latest: str
    svg: Markup


class ConstantShown(NamedTuple):
    """A metric that had one value throughout."""

    title: str
    value: str


class CheckpointShown(NamedTuple):
    """A checkpoint: the update after which it was made, and whether it was best on dev."""

    name: str
    best: bool
    spec: str


class RunShown(NamedTuple):
    """The page of a run."""

    place: ViewedPlace
    activity: Activity
    facts: dict[str, str]
    recipe: str
    objective: str
    curve: Markup
    figures: tuple[FigureShown, ...]
    constants: tuple[ConstantShown, ...]
    warm: tuple[FigureShown, ...]
    evaluations: tuple[EvaluationRow, ...]
    checkpoints: tuple[CheckpointShown, ...]
    progress: IndexProgress
    choices: Choices
    now: NowShown | None
    updates: int
    problem: str


def run_shown(place: ViewedPlace, index: LogIndex) -> RunShown:
    """A run as it is now."""
    recipe, facts = read_recipe(place)
    problem, rows, evaluations = "", (), ()
    try:
        rows = read_metrics(place.path, [])
        evaluations = read_evaluations(place.path, [])
    except TurnwiseError as error:
        problem = str(error)
    rl = [row for row in rows if row.phase == "rl"]
    figures, constants = figures_of(rl, costs_left_out(recipe))
    warm, _ = figures_of([row for row in rows if row.phase != "rl"])
    objective = place.path / "objective.txt"
    return RunShown(
        place,
        activity(place),
        facts,
        recipe,
        objective.read_text("utf-8", "replace") if objective.is_file() else "",
        learning_curve(rl),
        tuple(figures),
        tuple(constants),
        tuple(warm),
        evaluations,
        tuple(_checkpoints(place)),
        index.progress(),
        choices(index),
        now_shown(place.path),
        rl[-1].update if rl else 0,
        problem,
    )


def learning_curve(rows: Sequence[Metrics]) -> Markup:
    """Success of training episodes, and on dev with its band."""
    training = [row for row in rows if "success" in row.values]
    dev = [row for row in rows if "dev_success" in row.values]
    if len(training) + len(dev) < 2:
        return Markup("")
    bands = [row.intervals["dev_success"] for row in dev if "dev_success" in row.intervals]
    curves = [
        Curve([row.update for row in training], [row.values.get("success_unguided", row.values["success"]) for row in training], "second"),
        Curve([row.update for row in dev], [row.values["dev_success"] for row in dev], "first", bands),
    ]  # fmt: skip
    return chart(
        [curve for curve in curves if curve.x],
        label="Success over updates",
        width=960,
        height=260,
        share=True,
    )


def figures_of(
    rows: Sequence[Metrics], left_out: frozenset[str] = frozenset()
) -> tuple[list[FigureShown], list[ConstantShown]]:
    """A small curve for each metric that changed, known ones first; those that did not with their value; none of ``left_out``."""
    measured = {name: None for row in rows for name in row.values if name not in _IN_THE_CURVE | left_out}
    names = [name for name in PANELS if name in measured] + [name for name in measured if name not in PANELS]
    figures: list[FigureShown] = []
    constants: list[ConstantShown] = []
    for name in names:
        points = [(row.update, row.values[name]) for row in rows if name in row.values]
        panel = PANELS.get(name, Panel(_title(name)))
        values = [y for _, y in points]
        if is_constant(values):
            constants.append(ConstantShown(panel.title, short(values[-1])))
            continue
        svg = chart([Curve([x for x, _ in points], values)], label=panel.title, share=panel.share)
        latest = f"{100 * values[-1]:.1f} %" if panel.share else short(values[-1])
        figures.append(FigureShown(panel.title, latest, svg))
    return figures, constants


def _title(name: str) -> str:
    """Return the title of a metric without a panel of its own: its name, as the first words of a line."""
    said = visible(name.replace("_", " "))
    return said[:1].upper() + said[1:]


def _checkpoints(place: ViewedPlace) -> list[CheckpointShown]:
    best = place.path / "best"
    target = best.resolve().name if best.exists() else ""
    specs = {model.spec: model for model in models_of([place])}
    found: list[CheckpointShown] = []
    for folder in sorted(place.path.glob("checkpoints/step-*")):
        spec = f"torch:{folder / 'model'}"
        found.append(CheckpointShown(folder.name, folder.name == target, spec if spec in specs else ""))
    return found


class NowShown(NamedTuple):
    """State of a run at this moment, by its own words."""

    facts: tuple[tuple[str, str], ...]
    playing: tuple[tuple[str, int, int], ...]  # update, episodes done, of how many
    failures: tuple[tuple[str, int], ...]
    engines: tuple[EngineNow, ...] = ()  # those elsewhere


def now_shown(folder: Path) -> NowShown | None:
    """Read what the newest events of a run say; None where it wrote none, or none that can be read."""
    try:
        run = live_run(folder)
        state, learning, published = run.state, run.learning, run.published
        facts = [
            ("learner", str(state.get("doing", ""))),
            ("answers in flight", short(state["in_flight"]) if "in_flight" in state else ""),
            ("tokens per second", short(state["tokens_per_second"]) if "tokens_per_second" in state else ""),
            ("tokens sampled", short(state["tokens"]) if "tokens" in state else ""),
            ("staleness allowed", short(run.start["staleness"]) if "staleness" in run.start else ""),
            ("lag of the last batch", short(learning["lag"]) if "lag" in learning else ""),
            ("learner waited", f"{short(learning['waited'])} s" if "waited" in learning else ""),
            ("weights’ version", short(published["version"]) if "version" in published else ""),
            ("stall of the last sync", f"{short(published['stall'])} s" if "stall" in published else ""),
        ]
        playing = [
            (str(update), int(done), int(of)) for update, (done, of) in state.get("playing", {}).items()
        ]
        failures = [(visible(str(cause)), int(n)) for cause, n in state.get("failures", {}).items()]
        engines = tuple(run.engines)
    except (TurnwiseError, AttributeError, TypeError, ValueError, KeyError):
        return None
    return NowShown(
        tuple((name, visible(said)) for name, said in facts if said), tuple(playing), tuple(failures), engines
    )
