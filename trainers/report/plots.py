"""The report's large pictures: SVG by matplotlib, coloured by the page's own CSS variables.

The SVG is pasted into the page, so it follows light and dark mode and the page's typeface, and holds no
address of anything. Names of metrics stay outside, in HTML.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from turnwise.agents.evaluation.statistics import Interval
from turnwise.trainers.report.curves import Series, smoothed

# Stand-ins that matplotlib can draw with; each becomes a variable of the page.
_INK, _MUTED, _LINE, _ACCENT, _SECOND = "#010101", "#020202", "#030303", "#040404", "#050505"
_VARIABLES = {_INK: "ink", _MUTED: "muted", _LINE: "line", _ACCENT: "accent", _SECOND: "second"}
_ON_PAPER = {_INK: "#1b1e23", _MUTED: "#656b75", _LINE: "#d6d6d0"}
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 12,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _MUTED,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "grid.color": _LINE,
    "text.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.solid_capstyle": "round",
}

# What a picture inside a page must not have: a size and a font of its own, style for other elements,
# ids that other pictures use too, addresses.
_CLEANING = [
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        (r"<metadata>.*?</metadata>", ""),
        (r"<style.*?</style>", ""),
        (r'\s+(xmlns(:\w+)?|version)="[^"]*"', ""),
        (r'(<svg[^>]*?) height="[^"]*"', r"\1"),
        (r'(<svg[^>]*?) width="[^"]*"', r'\1 aria-hidden="true"'),
        (r' id="[A-Za-z0-9.]+_\d+"', ""),
        (r"xlink:href", "href"),
        (r"font-family: [^;\"]*; ", ""),
    )
]


class Marker(NamedTuple):
    """One evaluation to set beside a curve."""

    x: float
    y: float
    interval: Interval
    label: str


class Boundary(NamedTuple):
    """Place on the x-axis where a phase of the run begins, or a reset was made."""

    x: float
    label: str


def learning_curve(
    dev: Series, training: Series, markers: Sequence[Marker], boundaries: Sequence[Boundary] = ()
) -> Markup:
    """Success over updates: the dev split with its 95 % band, training episodes, held-out evaluations, and where phases begin."""
    with matplotlib.rc_context(page_style("learning")):
        figure = Figure(figsize=(14.2, 4.9), layout="constrained")
        axes = figure.subplots()
        if training.x:
            _faint_and_smooth(axes, training, _SECOND)
        if dev.x:
            if dev.intervals:
                low, high = zip(*dev.intervals, strict=True)
                axes.fill_between(dev.x, low, high, color=_ACCENT, alpha=0.16, linewidth=0)
            axes.plot(dev.x, dev.y, color=_ACCENT, linewidth=2.4, marker="o", markersize=5.5)
        for marker in markers:
            below, above = marker.y - marker.interval.low, marker.interval.high - marker.y
            axes.errorbar(
                marker.x, marker.y, yerr=[[below], [above]], color=_INK, fmt="D", markersize=7, capsize=4
            )  # fmt: skip
        for boundary in boundaries:
            axes.axvline(boundary.x, color=_MUTED, linewidth=1, linestyle=(0, (3, 3)))
            axes.annotate(
                boundary.label, (boundary.x, 1.0), xytext=(4, -4), textcoords="offset points", va="top", color=_MUTED,
                parse_math=False,
            )  # fmt: skip
        axes.set_ylim(-0.02, 1.02)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("update")
        return svg(figure)


def page_style(salt: str) -> dict[Any, Any]:
    """Return matplotlib's settings for a picture inside a page; ``salt`` keeps its ids apart from those of other pictures."""
    return {**_STYLE, "svg.hashsalt": salt}


def file_style(salt: str) -> dict[Any, Any]:
    """The same for a picture in a file of its own, which knows no page's colours."""
    return {
        key: _ON_PAPER.get(value, value) if isinstance(value, str) else value
        for key, value in page_style(salt).items()
    }


def _faint_and_smooth(axes: Axes, series: Series, colour: str) -> None:
    """Draw the measured values; where they are many, faint, with their running mean on top."""
    means = smoothed(series.y)
    if means is None:
        axes.plot(series.x, series.y, color=colour, linewidth=2.0)
        return
    axes.plot(series.x, series.y, color=colour, linewidth=1.1, alpha=0.35)
    axes.plot(series.x, means, color=colour, linewidth=2.2)


def svg(figure: Figure) -> Markup:
    """A figure that was drawn in :func:`page_style`, to be pasted into a page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    for pattern, replacement in _CLEANING:
        text = pattern.sub(replacement, text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var(--{variable})")
    return Markup(text)
