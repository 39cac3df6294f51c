"""Pictures of a comparison: learning curves on dev against cost, and the differences, in all and by knob."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from turnwise.agents.evaluation.statistics import Interval, share_mean
from turnwise.errors import TurnwiseError
from turnwise.trainers.compare.candidates import Contender
from turnwise.trainers.compare.comparison import Comparison, Contrast
from turnwise.trainers.report.plots import file_style, page_style, svg

# Of a middling lightness, so that they are told apart on white and on black.
COLOURS = ("#4a7fd0", "#d98324", "#2f9e62", "#c74f86", "#8a70d6", "#8f8f36", "#2fa3b5", "#b5563c")
_FORMATS = (".svg", ".png")
_AXIS = {
    "steps": "environment steps",
    "tokens": "tokens read and sampled",
    "seconds": "seconds",
    "updates": "updates",
}
_KNOBS = 8  # of one picture


class Point(NamedTuple):
    """One validation of a contender: a run's, or the mean over the runs of a group."""

    x: float
    y: float
    interval: Interval | None


def write_plot(comparison: Comparison, path: Path) -> Path:
    """Write the pictures as ``.svg`` or ``.png``, by the name's ending.

    Raises:
        TurnwiseError: another ending, or the file cannot be written.
    """
    if path.suffix.lower() not in _FORMATS:
        raise TurnwiseError(f"--plot {path} is neither .svg nor .png.", "Give the file one of these endings.")
    with matplotlib.rc_context(file_style("compare")):
        figure = draw(comparison)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
            figure.savefig(path, facecolor="white", dpi=150, metadata=metadata)
        except OSError as error:
            cause = f"Cannot write {path}: {error.strerror or error}."
            raise TurnwiseError(cause, "Choose another place with --plot.") from error
    return path


def pasted(comparison: Comparison) -> list[Markup]:
    """The pictures for a page, in its colours."""
    found: list[Markup] = []
    for name, picture in (("curves", draw_curves), ("differences", draw_differences)):
        with matplotlib.rc_context(page_style(f"compare-{name}")):
            figure = picture(comparison)
            found += [svg(figure)] if figure is not None else []
    return found


def draw(comparison: Comparison) -> Figure:
    """Both pictures under each other."""
    units, rows = _units(comparison), _rows(comparison)
    height = (4.6 if units else 0) + (_height(rows) if rows else 0)
    figure = Figure(figsize=(12.5, height), layout="constrained")
    if not units:
        _differences(figure.subplots(), comparison, rows)
        return figure
    if not rows:
        _curves(figure.subplots(1, len(units), squeeze=False, sharey=True)[0], comparison, units)
        return figure
    parts: Any = figure.subfigures(2, 1, height_ratios=(4.6, _height(rows)))
    top, bottom = parts
    _curves(top.subplots(1, len(units), squeeze=False, sharey=True)[0], comparison, units)
    _differences(bottom.subplots(), comparison, rows)
    return figure


def draw_curves(comparison: Comparison) -> Figure | None:
    """Success on dev against steps, tokens and seconds (updates, where these were not counted); None without runs."""
    units = _units(comparison)
    if not units:
        return None
    figure = Figure(figsize=(12.5, 4.6), layout="constrained")
    _curves(figure.subplots(1, len(units), squeeze=False, sharey=True)[0], comparison, units)
    return figure


def draw_differences(comparison: Comparison) -> Figure | None:
    """The difference of every contender to the base, in all and by knob; None where none was tested."""
    rows = _rows(comparison)
    if not rows:
        return None
    figure = Figure(figsize=(12.5, _height(rows)), layout="constrained")
    _differences(figure.subplots(), comparison, rows)
    return figure


def curve_points(side: Contender, unit: str) -> list[Point]:
    """A run's validations; of a group the mean over its runs after updates that all of them validated."""
    curves = [{v.update: v for v in member.curve if v.cost(unit) is not None} for member in side.members]
    updates = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    points: list[Point] = []
    for update in updates:
        found = [curve[update] for curve in curves]
        if len(found) == 1:
            points.append(Point(float(found[0].cost(unit) or 0), found[0].success, found[0].interval))
            continue
        mean = share_mean([v.success for v in found])
        points.append(
            Point(sum(float(v.cost(unit) or 0) for v in found) / len(found), mean.mean, mean.interval)
        )
    return points


def _units(comparison: Comparison) -> list[str]:
    known = [
        unit
        for unit in ("steps", "tokens", "seconds", "updates")
        if any(curve_points(side, unit) for side in comparison.contenders)
    ]
    return [unit for unit in known if unit != "updates"] or known


def _colours(comparison: Comparison) -> Mapping[str, str]:
    return {side.label: COLOURS[place % len(COLOURS)] for place, side in enumerate(comparison.contenders)}


def _curves(axes: Sequence[Axes], comparison: Comparison, units: Sequence[str]) -> None:
    colours = _colours(comparison)
    for axis, unit in zip(axes, units, strict=True):
        for side in comparison.contenders:
            points = curve_points(side, unit)
            x, y = [p.x for p in points], [p.y for p in points]
            axis.plot(x, y, color=colours[side.label], marker="o", markersize=4, label=side.label)
            if points and all(p.interval is not None for p in points):
                low, high = zip(*(p.interval for p in points if p.interval), strict=True)
                axis.fill_between(x, low, high, color=colours[side.label], alpha=0.13, linewidth=0)
        axis.set_xlabel(_AXIS[unit])
        axis.set_xlim(left=0)
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
        axis.set_ylim(-0.02, 1.02)
        axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes[0].set_ylabel("success on dev")
    axes[0].legend(frameon=False, loc="best")


def _rows(comparison: Comparison) -> list[str]:
    """Name the rows of the picture of differences, from the top: all tasks, then each knob's levels."""
    contrasts = comparison.measures[0].contrasts if comparison.measures else ()
    knobs = list(dict.fromkeys(row.knob for c in contrasts for row in c.knobs))[:_KNOBS]
    by_knob = (
        f"{row.knob}: {row.level}" for k in knobs for c in contrasts for row in c.knobs if row.knob == k
    )
    return list(dict.fromkeys(("all tasks", *by_knob))) if contrasts else []


def _height(rows: Sequence[str]) -> float:
    return 1.3 + 0.42 * len(rows)


def _differences(axis: Axes, comparison: Comparison, rows: Sequence[str]) -> None:
    colours, one = _colours(comparison), comparison.measures[0]
    axis.axvline(0, color=matplotlib.rcParams["axes.labelcolor"], linewidth=1)
    for place, contrast in enumerate(one.contrasts):
        offset = 0.5 * ((place + 0.5) / len(one.contrasts) - 0.5)
        colour = colours[contrast.other]
        label = f"{contrast.other} − {contrast.base}"
        for name, difference, (low, high) in _drawn(contrast):
            if name in rows:
                y = rows.index(name) + offset
                known = math.isfinite(high - low)
                reach = [[difference - low], [high - difference]] if known else None
                face = colour if known else "none"  # hollow: nobody knows how far it can be trusted
                axis.errorbar(
                    difference, y, xerr=reach, fmt="o", color=colour, mfc=face, capsize=3, label=label
                )
                label = "_"  # one entry of the legend is enough
    axis.set_yticks(range(len(rows)), rows)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(visible=False, axis="y")
    axis.grid(visible=True, axis="x")
    axis.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
    axis.set_xlabel(f"difference in success, points, 95 % intervals ({one.measure})")
    axis.legend(frameon=False, loc="best")


def _drawn(contrast: Contrast) -> Iterator[tuple[str, float, Interval]]:
    yield "all tasks", contrast.difference.difference, contrast.difference.interval
    for row in contrast.knobs:
        yield f"{row.knob}: {row.level}", row.difference, row.interval
