"""``report.html``: the whole run in one file, with whether it worked and what the optimizer saw.

It is made from what the run directory holds; each file may be missing, and then its part is left out::

    recipe.yaml          the frozen recipe
    objective.txt        the objective in words and formula, as `turnwise explain` prints it
    metrics.jsonl        one object per update: {"update": 12, "phase": "warm_start" | "rl", NAME: NUMBER, …}
                         Known names (PANELS below) get a title, others are shown by their own.
                         At evaluations also "dev_success": 0.61, "dev_success_interval": [0.52, 0.69].
    evaluations.jsonl    one object per evaluation: {"name": "warm start", "mode": "sampled" | "greedy",
                         **Evaluation.to_json(results=True)}; with "results" comparisons are paired by task.
                         The first and the last of a (split, mode, suite) are before and after.
    hack-meter.jsonl     one object per update: what its hack meter saw (turnwise.trainers.report.hacks)
    episodes.jsonl.zst   training episodes (turnwise.agents.log.episode_log), appended with update, group and advantages
    true-turns.json      turns with their true advantages (`turnwise credit-quality --run`)

The page has no script and loads nothing: observations are data, also for the reader's browser.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from turnwise.agents.evaluation.summary import percent
from turnwise.errors import TurnwiseError
from turnwise.trainers.report.curves import Series, small_curve
from turnwise.trainers.report.episodes import group_view
from turnwise.trainers.report.evaluated import is_evaluation, read_evaluated, render_evaluation
from turnwise.trainers.report.hacks import read_hacks
from turnwise.trainers.report.html import report_page
from turnwise.trainers.report.panels import PANELS, Panel, costs_left_out, is_constant
from turnwise.trainers.report.played import BANDS
from turnwise.trainers.report.plots import Boundary, Marker, learning_curve
from turnwise.trainers.report.records import EvaluationRow, Metrics, ReportedRun, difference, read_run
from turnwise.trainers.report.turns import TRUE_TURNS, load_groups, section

_MOST_PANELS = 30


_IN_THE_CURVE = frozenset({"dev_success", "success", "success_unguided"})


class ReportFigure(NamedTuple):
    """A small picture with its title and newest value."""

    title: str
    latest: str
    svg: Markup


class ConstantFigure(NamedTuple):
    """A metric that had one value throughout, or was measured once."""

    title: str
    latest: str


class ComparisonVerdict(NamedTuple):
    """Verdict on whether training worked, in figures and in plain words."""

    before: EvaluationRow
    after: EvaluationRow
    headline: str
    detail: str
    significant: bool
    better: bool
    others: tuple[str, ...] = ()  # the same in the other modes
    failures: tuple[str, ...] = ()  # why episodes do not count


def write_report(run_dir: Path | str) -> Path:
    """Write ``report.html`` into the folder of a run, or of an evaluation, and return its path.

    Raises:
        TurnwiseError: there is no run, a file of it is damaged, or the page cannot be written.
    """
    folder = Path(run_dir)
    text = render_evaluation(read_evaluated(folder)) if is_evaluation(folder) else render(read_run(folder))
    target = folder / "report.html"
    aside = folder / f".report.html.{os.getpid()}"
    try:
        aside.write_text(text, "utf-8", errors="replace")
        aside.replace(target)
    except OSError as error:
        raise TurnwiseError(
            f"Cannot write {target}: {error.strerror or error}.",
            "Free disk space, then `turnwise report` it.",
        ) from error
    finally:
        aside.unlink(missing_ok=True)
    return target


def render(run: ReportedRun) -> str:
    """The page's text."""
    rl = [row for row in run.metrics if row.phase == "rl"]
    warm = [row for row in run.metrics if row.phase != "rl"]
    figures, constants = _figures(rl, costs_left_out(run.recipe))
    return report_page(
        "report.html.j2",
        run=run,
        name=run.path.resolve().name,
        facts=run.facts() | _volume(run),
        verdict=verdict(run),
        curve=_curve(run, rl),
        warm=_figures(warm)[0],
        figures=figures,
        constants=constants,
        hacks=read_hacks(run.path, []),
        played=run.played,
        bands=BANDS,
        groups=[group_view(sample) for sample in run.samples],
        worth=section(known) if (known := load_groups(run.path / TRUE_TURNS)) else None,
    )


def verdict(run: ReportedRun) -> ComparisonVerdict | None:
    """Before and after in plain words, each mode with its own; None where the run was not evaluated twice."""
    pairs = run.pairs()
    if not pairs:
        return None
    first, *others = (_difference(*pair) for pair in pairs)
    before, after = pairs[0]
    verb = "made no significant difference to"
    if first.significant:
        verb = "raised" if first.points > 0 else "lowered"
    split = "held-out" if after.split == "test" else after.split
    headline = f"Training {verb} {split} success on {after.suite}."
    if run.trained is False:
        headline = "Nothing was trained by reinforcement: no update had anything to learn from (docs/how-to/not-learning.md)."
    left_out, played = sum(row.excluded for row in pairs[0]), sum(row.episodes for row in pairs[0])
    if left_out:
        headline += f" {left_out} of {played} episodes failed and do not count."
    failures = tuple(
        f"{row.name}, {row.mode}: {cause}" for pair in pairs for row in pair for cause in row.causes[:2]
    )
    said = tuple(other.detail for other in others)
    return ComparisonVerdict(
        before,
        after,
        headline,
        first.detail,
        first.significant,
        first.points > 0,
        said,
        tuple(dict.fromkeys(failures)),
    )


class _Difference(NamedTuple):
    points: float
    significant: bool
    detail: str


def _difference(before: EvaluationRow, after: EvaluationRow) -> _Difference:
    """Two evaluations of one kind, compared."""
    found = difference(before, after)
    points = after.success - before.success
    counting = min(row.episodes - row.excluded for row in (before, after))
    detail = (
        f"{found.verdict}: {100 * points:+.1f} points, 95 % interval "
        f"{100 * found.interval.low:+.1f} … {100 * found.interval.high:+.1f} ({found.test}). "
        f"{counting} {after.mode} episodes of the {after.split} split on each side."
    )
    return _Difference(points, found.significant, detail)


def _volume(run: ReportedRun) -> dict[str, str]:
    """Count what was done, from the logs themselves."""
    facts: dict[str, str] = {}
    updates = {phase: sum(row.phase == phase for row in run.metrics) for phase in ("warm_start", "rl")}
    if any(updates.values()):
        parts = [f"{n} {phase.replace('_', ' ')}" for phase, n in updates.items() if n]
        facts["updates logged"] = " + ".join(parts)
    if run.outcomes:
        total = sum(run.outcomes.values())
        facts["training episodes"] = f"{total:,}".replace(",", " ")
        bad = {name: n for name, n in run.outcomes.items() if name not in ("ok", "limit")}
        if bad:
            facts["left out of training"] = ", ".join(f"{n} {name}" for name, n in bad.items())
    seconds = sum(row.values.get("seconds", 0.0) for row in run.metrics)
    if seconds:
        facts["time in updates"] = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
    return facts


def _curve(run: ReportedRun, rl: Sequence[Metrics]) -> Markup | None:
    dev = [row for row in rl if "dev_success" in row.values]
    training = [row for row in rl if "success" in row.values]
    if len(dev) + len(training) < 2:
        return None
    known = [row.intervals.get("dev_success") for row in dev]
    intervals = [interval for interval in known if interval is not None]
    updates = [row.update for row in (*dev, *training)]
    pair = run.pair()
    markers = [
        Marker(x, row.success, row.success_interval, row.name)
        for x, row in zip((min(updates), max(updates)), pair or (), strict=False)
    ]
    return learning_curve(
        Series(
            [row.update for row in dev],
            [row.values["dev_success"] for row in dev],
            intervals if len(intervals) == len(dev) else (),
        ),
        Series([row.update for row in training], [_unguided(row) for row in training]),
        markers,
        [Boundary(begin, name) for name, begin in run.phases() if begin < max(updates)] + _resets(rl),
    )


def _resets(rows: Sequence[Metrics]) -> list[Boundary]:
    """Before which updates the reference and the optimizer began anew."""
    name = "schedule/optimizer.resets"
    known = [row for row in rows if name in row.values]
    return [
        Boundary(after.update - 1, "reset")
        for before, after in pairwise(known)
        if before.values[name] != after.values[name]
    ]


def _unguided(row: Metrics) -> float:
    """The success of training episodes; before guides had a hand in them, where there are any."""
    return row.values.get("success_unguided", row.values["success"])


def _figures(
    rows: Sequence[Metrics], left_out: frozenset[str] = frozenset()
) -> tuple[list[ReportFigure], list[ConstantFigure]]:
    """A small curve for each metric that changed, known ones first, and those that were measured and never did."""
    measured = {name: None for row in rows for name in row.values if name not in _IN_THE_CURVE | left_out}
    others = sorted((name for name in measured if name not in PANELS), key=_is_cost)
    names = [name for name in PANELS if name in measured] + others
    figures: list[ReportFigure] = []
    constants: list[ConstantFigure] = []
    for name in names:
        points = [(row.update, row.values[name]) for row in rows if name in row.values]
        panel = PANELS.get(name, Panel(name.replace("_", " ")))
        latest = _short(points[-1][1], share=panel.share)
        if is_constant([y for _, y in points]):
            constants.append(ConstantFigure(panel.title, latest))
        elif len(figures) < _MOST_PANELS:
            series = Series([x for x, _ in points], [y for _, y in points])
            figures.append(ReportFigure(panel.title, latest, small_curve(series, share=panel.share)))
    return figures, constants


def _is_cost(name: str) -> bool:
    """Say whether a metric is what a part took, which is shown after what was measured of the policy."""
    return name.endswith(("_seconds", "_tokens"))


def _short(value: float, *, share: bool = False) -> str:
    if share:
        return percent(value)
    if value and not 1e-3 <= abs(value) < 1e7:
        return f"{value:.2e}"
    return f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.3g}"
