"""Curves, strips and histograms as SVG, coloured by classes of the style sheet: no styles and no scripts inside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

from turnwise.agents.evaluation.statistics import Interval

_RIGHT = 18  # room for half of the last number


class Curve(NamedTuple):
    """A measured quantity over updates."""

    x: Sequence[float]
    y: Sequence[float]
    kind: str = "first"  # the class that colours it
    bands: Sequence[Interval] = ()
    name: str = ""


class Frame(NamedTuple):
    """The room of a picture and the values at its edges."""

    width: float
    height: float
    left: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at_x(self, x: float) -> float:
        low, high = self.x
        return round(self.left + (self.width - self.left - _RIGHT) * ((x - low) / ((high - low) or 1)), 2)

    def at_y(self, y: float) -> float:
        low, high = self.y
        return round(
            (self.height - self.bottom) - (self.height - self.bottom - 8) * ((y - low) / ((high - low) or 1)),
            2,
        )


def chart(
    curves: Sequence[Curve], *, label: str, width: int = 340, height: int = 130, share: bool = False
) -> Markup:
    """Curves over updates with a few grid lines; ``label`` says what they are to those who do not see them."""
    points = [(x, y) for curve in curves for x, y in zip(curve.x, curve.y, strict=True)]
    if not points:
        return Markup("")
    values = [y for _, y in points] + [end for curve in curves for band in curve.bands for end in band]
    ticks = _ticks(*((0.0, 1.0) if share else (min(values), max(values))), 5 if height > 200 else 3)
    xs = [x for x, _ in points]
    frame = Frame(width, height, 46, 22, (min(xs), max(xs)), (ticks[0], ticks[-1]))
    parts = [_grid(frame, ticks, share), *(_curve(frame, curve) for curve in curves)]
    return _svg(frame, label, parts)


def strip(
    groups: Sequence[tuple[str, Sequence[float]]], *, label: str, mark: float | None = None, width: int = 660
) -> Markup:
    """Values of several groups as dots on a line each, with their means; ``mark`` is a value that stands for itself."""
    values = [x for _, row in groups for x in row] + ([mark] if mark is not None else [])
    if not values:
        return Markup("")
    ticks = _ticks(min(values), max(values), 5)
    height = 34 + 40 * len(groups)
    frame = Frame(width, height, 150, 24, (ticks[0], ticks[-1]), (0, 1))
    parts: list[Markup] = []
    for tick in ticks:
        x = frame.at_x(tick)
        parts.append(Markup('<path class="grid" d="M{0} 8V{1}"/>').format(x, height - 24))
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(x, height - 8, short(tick))
        )
    for number, (name, row) in enumerate(groups):
        parts.append(_dots(frame, name, row, 28 + 40 * number, number))
    if mark is not None:
        x = frame.at_x(mark)
        parts.append(Markup('<path class="mark" d="M{0} 8V{1}"/>').format(x, height - 24))
    return _svg(frame, label, parts)


def forest(
    rows: Sequence[tuple[str, float, Interval]], *, label: str, zero: bool = True, width: int = 660
) -> Markup:
    """Estimates with their intervals, one under the other."""
    ends = [end for _, _, band in rows for end in band if math.isfinite(end)]
    if not ends:
        return Markup("")
    ticks = _ticks(min([*ends, 0.0] if zero else ends), max([*ends, 0.0] if zero else ends), 5)
    height = 34 + 26 * len(rows)
    frame = Frame(width, height, 200, 24, (ticks[0], ticks[-1]), (0, 1))
    parts: list[Markup] = []
    for tick in ticks:
        x, kind = frame.at_x(tick), "axis" if zero and abs(tick) < 1e-12 else "grid"
        parts.append(Markup('<path class="{}" d="M{} 8V{}"/>').format(kind, x, height - 24))
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(x, height - 8, short(tick))
        )
    for number, (name, value, band) in enumerate(rows):
        y = 22 + 26 * number
        low, high = (frame.at_x(min(max(end, ticks[0]), ticks[-1])) for end in band)
        parts.append(Markup('<text x="0" y="{}" class="name">{}</text>').format(y + 4, name[:30]))
        parts.append(Markup('<path class="band-line" d="M{} {}H{}"/>').format(low, y, high))
        parts.append(Markup('<circle class="point" cx="{}" cy="{}" r="4"/>').format(frame.at_x(value), y))
    return _svg(frame, label, parts)


def bar(value: float, largest: float, *, width: int = 120) -> Markup:
    """A bar from the middle: to the right for what is above 0, to the left for what is below."""
    half = width / 2
    size = round(half * min(1.0, abs(value) / largest), 2) if largest else 0
    x = half if value >= 0 else half - size
    return Markup(
        '<svg class="bar {}" viewBox="0 0 {} 10" width="{}" height="10" aria-hidden="true"><path class="rail" d="M0 5H{}"/>'
        '<rect x="{}" y="1" width="{}" height="8" rx="1"/><path class="axis" d="M{} 0V10"/></svg>'
    ).format("up" if value >= 0 else "down", width, width, width, x, size, half)


def share_bar(value: float, band: Interval | None = None, *, width: int = 140) -> Markup:
    """A share between 0 and 1 with its interval."""
    low, high = (max(0.0, min(1.0, end)) for end in (band or (value, value)))
    return Markup(
        '<svg class="share" viewBox="0 0 {w} 10" width="{w}" height="10" aria-hidden="true"><rect class="rail" width="{w}" '
        'height="10" rx="2"/><rect class="band" x="{x}" width="{b}" height="10" rx="2"/><rect class="point" x="{p}" y="-1" '
        'width="3" height="12" rx="1"/></svg>'
    ).format(
        w=width, x=round(width * low, 1), b=round(width * (high - low), 1), p=round((width - 3) * value, 1)
    )


def short(value: float) -> str:
    """A number in a few characters.

    >>> [short(x) for x in (0.0, 0.25, 1.0, 12_500.0, 3.2e-5, -0.5)]
    ['0', '0.25', '1', '12 500', '3.2e-05', '−0.5']
    """
    if value and not 1e-3 <= abs(value) < 1e7:
        text = f"{value:.1e}"
    else:
        text = f"{value:,.0f}".replace(",", " ") if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def _ticks(low: float, high: float, wanted: int) -> list[float]:
    """Round numbers from at most ``low`` to at least ``high``."""
    if high - low < 1e-12:
        low, high = low - (abs(low) * 0.1 or 0.5), high + (abs(high) * 0.1 or 0.5)
    raw = (high - low) / (wanted - 1)
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [step * n for n in range(first, last + 1)]


def _grid(frame: Frame, ticks: Sequence[float], share: bool) -> Markup:
    parts: list[Markup] = []
    for tick in ticks:
        y = frame.at_y(tick)
        said = f"{100 * tick:.0f} %" if share else short(tick)
        parts.append(Markup('<path class="grid" d="M{} {}H{}"/>').format(frame.left, y, frame.width - _RIGHT))
        parts.append(
            Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(frame.left - 6, y + 4, said)
        )
    low, high = frame.x
    for x, anchor in ((low, "start"), (high, "end")):
        if x == low or high > low:
            parts.append(
                Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format(
                    frame.at_x(x), frame.height - 5, anchor, short(x)
                )
            )
    return Markup("").join(parts)


def _curve(frame: Frame, curve: Curve) -> Markup:
    points = [(frame.at_x(x), frame.at_y(y)) for x, y in zip(curve.x, curve.y, strict=True)]
    parts: list[Markup] = []
    if curve.bands and len(curve.bands) == len(points):
        over = [f"{x} {frame.at_y(band.high)}" for (x, _), band in zip(points, curve.bands, strict=True)]
        under = [f"{x} {frame.at_y(band.low)}" for (x, _), band in zip(points, curve.bands, strict=True)]
        parts.append(
            Markup('<path class="band {}" d="M{}Z"/>').format(curve.kind, "L".join([*over, *reversed(under)]))
        )
    line = "L".join(f"{x} {y}" for x, y in points)
    window = len(points) // 12
    faint = " faint" if window >= 2 else ""
    parts.append(Markup('<path class="line {}{}" d="M{}"/>').format(curve.kind, faint, line))
    if window >= 2:
        smooth = _smooth(curve.y, window)
        line = "L".join(f"{x} {frame.at_y(y)}" for (x, _), y in zip(points, smooth, strict=True))
        parts.append(Markup('<path class="line {}" d="M{}"/>').format(curve.kind, line))
    if len(points) < 24:
        parts += [
            Markup('<circle class="dot {}" cx="{}" cy="{}" r="2.5"/>').format(curve.kind, x, y)
            for x, y in points
        ]
    return Markup("").join(parts)


def _smooth(values: Sequence[float], window: int) -> list[float]:
    """The running mean; at the ends over what there is."""
    found: list[float] = []
    for index in range(len(values)):
        near = values[max(0, index - window) : index + window + 1]
        found.append(sum(near) / len(near))
    return found


def _dots(frame: Frame, name: str, row: Sequence[float], y: float, number: int) -> Markup:
    parts = [Markup('<text x="0" y="{}" class="name">{}</text>').format(y + 4, name[:24])]
    piled: dict[float, int] = {}
    for value in row:
        x = frame.at_x(value)
        level = piled[x] = piled.get(x, -1) + 1
        lift = ((level + 1) // 2) * (4 if level % 2 else -4)
        parts.append(
            Markup('<circle class="dot {}" cx="{}" cy="{}" r="3"/>').format(
                "first" if number == 0 else "second", x, y + max(-16, min(16, lift))
            )
        )
    if row:
        mean = frame.at_x(sum(row) / len(row))
        parts.append(Markup('<path class="mean" d="M{} {}V{}"/>').format(mean, y - 12, y + 12))
    return Markup("").join(parts)


def _svg(frame: Frame, label: str, parts: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg class="chart" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}">{}</svg>'
    ).format(escape(label), frame.width, frame.height, frame.width, Markup("").join(parts))
