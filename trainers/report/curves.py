"""Small curves of the report, written as SVG by hand: a page has dozens, and a plotting library takes a tenth of a second for each.

They are coloured by the page's own CSS variables and hold no address, as those of :mod:`turnwise.trainers.report.plots`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

WIDTH, HEIGHT = 316.8, 136.8
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 310.0, 8.0, 118.3
_MARGIN = 0.05  # of the range, on each side
_NICE = (1, 2, 2.5, 5, 10)


class Series(NamedTuple):
    """A measured quantity over updates."""

    x: Sequence[float]
    y: Sequence[float]
    intervals: Sequence[Sequence[float]] = ()


class _Axis(NamedTuple):
    """Values from ``low`` to ``high``, shown from one place of the picture to another."""

    low: float
    high: float
    begin: float
    end: float

    def place(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


def small_curve(series: Series, *, share: bool = False) -> Markup:
    """Draw one metric, small.

    >>> text = small_curve(Series([1, 2, 3], [0.1, 0.5, 0.3]), share=True)
    >>> text.count("<path"), "40%" in text
    (1, True)
    """
    finite = [(x, y) for x, y in zip(series.x, series.y, strict=True) if math.isfinite(y)]
    x_axis = _axis([x for x, _ in finite], _LEFT, _RIGHT)
    y_axis = _axis([y for _, y in finite], _BOTTOM, _TOP)
    parts = [
        _line(y_axis.place(value), _text(_LEFT - 4, y_axis.place(value) + 4.5, "end", label))
        for value, label in _labelled(ticks(y_axis.low, y_axis.high, 3), share=share)
    ]
    whole = ticks(x_axis.low, x_axis.high, 4, least=1)
    parts += [
        _text(x_axis.place(value), HEIGHT - 4, "middle", label)
        for value, label in _labelled(whole, share=False)
    ]
    parts.append(_line(_BOTTOM))
    parts += _curves(finite, x_axis, y_axis)
    return Markup(f'<svg aria-hidden="true" viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(parts)}</svg>')


def smoothed(values: Sequence[float]) -> list[float] | None:
    """Return the running mean over a sixth of the values, whose ends are continued; None where they are few."""
    window = len(values) // 12
    if window < 2:
        return None
    padded = [values[0]] * window + list(values) + [values[-1]] * window
    width = 2 * window + 1
    total, means = math.fsum(padded[:width]), list[float]()
    for begin in range(len(values)):
        means.append(total / width)
        if begin + width < len(padded):
            total += padded[begin + width] - padded[begin]
    return means


def ticks(low: float, high: float, most: int, least: float = 0.0) -> list[float]:
    """Return round numbers between two, with at most so many steps of at least a given width.

    >>> ticks(0.08, 0.52, 3)
    [0.2, 0.4]
    >>> ticks(0.9, 3.1, 4, least=1)
    [1, 2, 3]
    """
    decade = 10.0 ** math.floor(math.log10((high - low) / most))
    fitting = (nice * decade for nice in _NICE if nice * decade * most >= (high - low) * (1 - 1e-9))
    step = max(next(fitting, 10 * decade), least)
    step = math.ceil(step) if least else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [
        float(f"{number * step:.12g}") if step % 1 else number * step for number in range(first, last + 1)
    ]


def _axis(values: Sequence[float], begin: float, end: float) -> _Axis:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if high - low < max(1e-9, 1e-9 * abs(high)):  # a constant: leave it room
        room = max(0.5, 0.1 * abs(high))
        return _Axis(low - room, high + room, begin, end)
    room = _MARGIN * (high - low)
    return _Axis(low - room, high + room, begin, end)


def _labelled(values: Sequence[float], *, share: bool) -> Iterable[tuple[float, str]]:
    """Return each with its text; as many digits as tell neighbours apart."""
    shown = [100 * value for value in values] if share else list(values)
    steps = [after - before for before, after in pairwise(shown)] or [abs(number) for number in shown]
    step = min(steps, default=1.0) or 1.0
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    decimals += round(step, decimals) != round(step, 9)
    for value, number in zip(values, shown, strict=True):
        plain = f"{number:.{decimals}f}" if decimals <= 4 and abs(number) < 1e5 else f"{number:.2g}"
        yield value, plain + "%" * share


def _curves(points: Sequence[tuple[float, float]], x_axis: _Axis, y_axis: _Axis) -> list[str]:
    """Draw the measured values; where they are many, faint, with their running mean on top."""
    xs = [x_axis.place(x) for x, _ in points]
    means = smoothed([y for _, y in points])
    places = [y_axis.place(y) for _, y in points]
    if means is None:
        return [_path(xs, places, 2.0)]
    return [_path(xs, places, 1.1, 0.35), _path(xs, [y_axis.place(y) for y in means], 2.2)]


def _path(xs: Sequence[float], ys: Sequence[float], width: float, opacity: float = 1.0) -> str:
    points = " L ".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    if len(xs) == 1:
        points += " h 0"  # a dot
    faint = f"; opacity: {opacity}" if opacity < 1 else ""
    style = f"fill: none; stroke: var(--accent); stroke-width: {width}; stroke-linecap: round{faint}"
    return f'<path d="M {points}" style="{style}"/>' if points else ""


def _line(y: float, label: str = "") -> str:
    ends = f'x1="{_LEFT}" x2="{_RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
    return f'<line {ends} style="stroke: var(--line); stroke-width: 0.8"/>{label}'


def _text(x: float, y: float, anchor: str, text: str) -> str:
    style = f"font-size: 12px; text-anchor: {anchor}; fill: var(--muted)"
    return f'<text style="{style}" x="{x:.1f}" y="{y:.1f}">{text}</text>'
