"""What each page shows, gathered from the folders: typed values that templates read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from turnwise.agents.evaluation.evaluate import Evaluation
from turnwise.agents.log.episode_log import read_record
from turnwise.agents.log.records import Record
from turnwise.errors import TurnwiseError
from turnwise.trainers.report.episodes import visible
from turnwise.trainers.report.events import live_run
from turnwise.trainers.report.panels import PANELS, Panel, is_constant
from turnwise.trainers.report.records import EvaluationRow, Metrics, read_evaluations, read_metrics
from turnwise.trainers.report.turns import TRUE_TURNS, load_groups
from turnwise.trainers.view.drawing import Curve, chart, short
from turnwise.trainers.view.given import GroupGiven, credit_of
from turnwise.trainers.view.index import IndexProgress, LogIndex
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
from turnwise.trainers.view.selection import (
    PAGE,
    Choices,
    EpisodeRow,
    FoundEpisodes,
    Selection,
    SelectionTally,
    beside,
    choices,
    find,
    one,
    siblings,
)
from turnwise.trainers.view.told import AgentShown, EpisodeShown, show_episode, tokenizer_of

_IN_THE_CURVE = frozenset({"dev_success", "success", "success_unguided"})
_MOST_SIBLINGS = 64


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
        """Whether anything is being written."""
        return any(row.activity.live for row in (*self.runs, *self.evaluations))


def overview(folders: Sequence[Path], places: Sequence[ViewedPlace], words: str) -> OverviewShown:
    """The first page; with ``words`` only what has them in its name, suite or policy."""
    runs = [_run_row(place) for place in places if place.kind == "run"]
    played = [_evaluation_line(place) for place in places if place.kind == "evaluation"]
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


def _evaluation_line(place: ViewedPlace) -> EvaluationLine:
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
    figures, constants = figures_of(rl)
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


def figures_of(rows: Sequence[Metrics]) -> tuple[list[FigureShown], list[ConstantShown]]:
    """A small curve for each metric that changed, known ones first; those that did not with their value."""
    measured = {name: None for row in rows for name in row.values if name not in _IN_THE_CURVE}
    names = [name for name in PANELS if name in measured] + [name for name in measured if name not in PANELS]
    figures: list[FigureShown] = []
    constants: list[ConstantShown] = []
    for name in names:
        points = [(row.update, row.values[name]) for row in rows if name in row.values]
        panel = PANELS.get(name, Panel(visible(name.replace("_", " "))))
        values = [y for _, y in points]
        if is_constant(values):
            constants.append(ConstantShown(panel.title, short(values[-1])))
            continue
        svg = chart([Curve([x for x, _ in points], values)], label=panel.title, share=panel.share)
        latest = f"{100 * values[-1]:.1f} %" if panel.share else short(values[-1])
        figures.append(FigureShown(panel.title, latest, svg))
    return figures, constants


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
    """What a run does at this moment, by its own words."""

    facts: tuple[tuple[str, str], ...]
    playing: tuple[tuple[str, int, int], ...]  # update, episodes done, of how many
    failures: tuple[tuple[str, int], ...]


def now_shown(folder: Path) -> NowShown | None:
    """What the newest events of a run say; None where it wrote none, or none that can be read."""
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
    except (TurnwiseError, TypeError, ValueError, KeyError):
        return None
    return NowShown(
        tuple((name, visible(said)) for name, said in facts if said), tuple(playing), tuple(failures)
    )


class EndShown(NamedTuple):
    """How many episodes ended in a way."""

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
    line, known, counted = _evaluation_line(place), choices(index), find(index, Selection(), most=1).tally
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


class EpisodesShown(NamedTuple):
    """A page of the list of episodes."""

    place: ViewedPlace
    selection: Selection
    progress: IndexProgress
    choices: Choices
    found: FoundEpisodes
    pages: int
    trained: bool


def episodes_shown(place: ViewedPlace, index: LogIndex, selection: Selection) -> EpisodesShown:
    """A page of those that were asked for."""
    found = find(index, selection)
    return EpisodesShown(
        place,
        selection,
        index.progress(),
        choices(index),
        found,
        max(1, -(-found.total // PAGE)),
        place.kind == "run",
    )


class OneEpisode(NamedTuple):
    """The page of an episode."""

    place: ViewedPlace
    selection: Selection
    row: EpisodeRow
    prompt: str
    error: str
    seed: str
    shown: EpisodeShown
    siblings: tuple[EpisodeRow, ...]
    before: int | None
    after: int | None
    given: GroupGiven | None
    trained: bool
    largest: float

    @property
    def first(self) -> AgentShown:
        """The agent that is evaluated."""
        return self.shown.agents[0]


def episode_shown(
    place: ViewedPlace, index: LogIndex, number: int, selection: Selection, *, rules: bool = False
) -> OneEpisode:
    """An episode with its neighbours; with ``rules`` what every credit rule would give it.

    Raises:
        TurnwiseError: there is none of this number, or the log is damaged there.
    """
    row = required_row(place, index, number)
    record = read_record(place.log, index.place(number))
    truths = load_groups(place.path / TRUE_TURNS) if place.path.is_dir() else ()
    folder = place.path if place.path.is_dir() else place.path.parent
    shown = show_episode(record, tokenizer_of(folder, row.policy), truths)
    others = siblings(index, row)
    before, after = beside(index, selection, row)
    return OneEpisode(
        place,
        selection,
        row,
        visible(record.episode.task.prompt),
        visible(record.episode.error),
        str(record.episode.seed),
        shown,
        others,
        before,
        after,
        _given(place, index, row, record, others) if rules else None,
        bool(record.given),
        max(map(abs, record.given), default=0.0),
    )


def required_row(place: ViewedPlace, index: LogIndex, number: int) -> EpisodeRow:
    """The row of an episode.

    Raises:
        TurnwiseError: the index has none of this number.
    """
    row = one(index, number)
    if row is None:
        raise TurnwiseError(
            f"There is no episode {number} in {place.name}.", "The list of episodes has their numbers."
        )
    return row


def _given(
    place: ViewedPlace, index: LogIndex, row: EpisodeRow, record: Record, others: Sequence[EpisodeRow]
) -> GroupGiven:
    near = [other for other in others if other.id != row.id][: _MOST_SIBLINGS - 1]
    group = [read_record(place.log, index.place(other.id)).episode for other in near]
    return credit_of([record.episode, *group], 0)
