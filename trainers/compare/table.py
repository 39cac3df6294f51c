"""A comparison in the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from turnwise.agents.evaluation.comparison import SuccessDifference, p_text
from turnwise.agents.evaluation.statistics import Estimate, Interval
from turnwise.agents.evaluation.summary import percent
from turnwise.trainers.compare.at_cost import CostComparison
from turnwise.trainers.compare.comparison import Comparison, Contrast, MeasureComparison
from turnwise.trainers.compare.knobs import KnobDifference

_IDS = 3  # of won and lost tasks that are shown; all of them are in the JSON
_ROWS = 12  # of a table by knob
_UNKNOWN = "unknown"


def renderables(comparison: Comparison) -> Iterator[RenderableType]:
    """Yield the tables and sentences that are printed, one after the other."""
    for one in comparison.measures:
        yield _standings(one, comparison.base)
        for contrast in one.contrasts:
            yield sentence(contrast, len(one.contrasts))
            yield from map(Text, details(contrast))
            if contrast.seeds:
                yield _seeds(contrast)
            if contrast.knobs:
                yield _knobs(contrast)
    if comparison.costs:
        yield _costs(comparison.costs)
    for note in comparison.notes:
        yield Text(f"Note: {note}.", style="yellow")


def sentence(contrast: Contrast, comparisons: int) -> Text:
    """The verdict in one plain sentence."""
    difference = contrast.difference
    colour = "yellow"
    if contrast.significant:
        colour = "green" if difference.difference > 0 else "red"
    holm = f"; with Holm's adjustment over {comparisons} comparisons {p_text(contrast.adjusted_p)}"
    return Text.assemble(
        f"{contrast.other} against {contrast.base}: ",
        (contrast.verdict, f"bold {colour}"),
        f": {points(difference.difference)} points, 95 % interval {points_interval(difference.interval)} "
        f"({difference.test}{holm if comparisons > 1 else ''}).",
    )


def details(contrast: Contrast) -> list[str]:
    """Tasks won, lost and tied, and how far apart both were before reinforcement."""
    lines: list[str] = []
    if contrast.won or contrast.lost or contrast.tied:
        lines += [
            f"  won {_named(contrast.won)}",
            f"  lost {_named(contrast.lost)}",
            f"  tied {_counted(contrast.tied)}",
        ]
    if contrast.start is not None:
        start = contrast.start
        lines.append(
            f"  before reinforcement: {points(start.difference)} points, 95 % interval {points_interval(start.interval)}"
        )
    return lines


def points(difference: float) -> str:
    """
    >>> points(0.0634), points(-0.5), points(-1e-9)
    ('+6.3', '-50.0', '0.0')
    """
    text = f"{100 * difference:+.1f}"
    return text if float(text) else "0.0"


def points_interval(interval: Interval) -> str:
    """
    >>> points_interval(Interval(-0.1, 0.25)), points_interval(Interval(-math.inf, math.inf))
    ('-10.0 … +25.0', 'unknown')
    """
    low, high = interval
    return f"{points(low)} … {points(high)}" if math.isfinite(high - low) else _UNKNOWN


def share_interval(estimate: Estimate) -> str:
    """
    >>> share_interval(Estimate(0.5, Interval(0.25, 0.75), 10, 10))
    '25.0 … 75.0 %'
    """
    low, high = estimate.interval
    return f"{100 * low:.1f} … {100 * high:.1f} %" if math.isfinite(high - low) else _UNKNOWN


def _standings(one: MeasureComparison, base: str) -> Table:
    over = "runs" if any(standing.runs > 1 for standing in one.standings) else ""
    starts = any(standing.before for standing in one.standings)
    headings = ["", *(["before"] if starts else []), "success", "95 % interval", "score", "turns", over]
    table = _table(
        f"{one.measure}", [heading for heading in headings if heading or not headings.index(heading)]
    )
    for standing in one.standings:
        name = f"{standing.label} (base)" if standing.label == base else standing.label
        cells = [percent(standing.before.mean if standing.before else None)] if starts else []
        cells += [percent(standing.success.mean), share_interval(standing.success)]
        cells += [_number(standing.mean_score, ".3f"), _number(standing.turns, ".1f")]
        table.add_row(Text(name), *cells, *([str(standing.runs)] if over else []))
    return table


def _seeds(contrast: Contrast) -> Table:
    table = _table("by seed", ["seed", contrast.base, contrast.other, "difference"])
    for row in contrast.seeds:
        seed = str(row.seed) if row.seed >= 0 else f"run {-row.seed}"
        table.add_row(seed, percent(row.before), percent(row.after), points(row.after - row.before))
    return table


def _knobs(contrast: Contrast) -> Table:
    table = _table("by knob", ["", "tasks", contrast.base, contrast.other, "difference", "95 % interval"])
    names = list(dict.fromkeys(row.knob for row in contrast.knobs))
    shown = 0
    for name in names:
        rows = [row for row in contrast.knobs if row.knob == name]
        if shown and table.row_count + len(rows) > _ROWS:
            break
        for row in rows:
            table.add_row(Text(f"{name}: {row.level}"), *_knob_cells(row))
        table.add_section()
        shown += 1
    left_out = f" {len(names) - shown} more are in --json and --out." if len(names) > shown else ""
    table.caption = f"Student's intervals over tasks, not adjusted for how many there are.{left_out}"
    table.caption_justify = "left"
    table.caption_style = "dim"
    return table


def _knob_cells(row: KnobDifference) -> list[str]:
    shown = points_interval(row.interval)
    return [str(row.tasks), percent(row.before), percent(row.after), points(row.difference), shown]


def _costs(costs: Sequence[CostComparison]) -> Table:
    table = _table("on dev at equal cost", ["", "", "success", "difference", "95 % interval"])
    for cost in costs:
        for place, standing in enumerate(cost.standings):
            where = f"{cost.budget:,.0f} {cost.unit}" if not place else ""
            table.add_row(
                Text(where), Text(standing.label), *_cost_cells(standing.success, standing.difference)
            )
        table.add_section()
    table.caption = (
        "The last validation that had cost no more. The budget is what the cheapest run spent in all; "
        "runs alone are compared by their intervals, not in pairs."
    )
    table.caption_justify = "left"
    table.caption_style = "dim"
    return table


def _cost_cells(success: Estimate | None, difference: SuccessDifference | None) -> list[str]:
    if success is None:
        return ["not validated yet", "", ""]
    if difference is None:
        return [percent(success.mean), "", ""]
    return [percent(success.mean), points(difference.difference), points_interval(difference.interval)]


def _table(title: str, headings: Sequence[str]) -> Table:
    table = Table(
        title=Text(title), title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False
    )
    for place, heading in enumerate(headings):
        left = not place or (not heading and place == 1)
        table.add_column(Text(heading), justify="left" if left else "right", overflow="fold")
    return table


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:_IDS]) + (", …" if len(ids) > _IDS else "")
    return f"{_counted(ids)}: {shown}" if ids else _counted(ids)


def _counted(ids: Sequence[str]) -> str:
    return f"{len(ids)} task{'' if len(ids) == 1 else 's'}"


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "–"
