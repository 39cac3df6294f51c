"""Findings of audits as one page that holds everything, and as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

import turnwise
from turnwise.errors import TurnwiseError
from turnwise.trainers.audit.core import Audit, AuditFigure, AuditFinding, AuditTable, Cell
from turnwise.trainers.audit.registry import AuditReport, audits_of
from turnwise.trainers.view.drawing import Curve, chart

_KINDS = ("first", "second", "third", "fourth")
_ROWS = 40


def write_page(report: AuditReport, path: Path) -> Path:
    """Write the page.

    Raises:
        TurnwiseError: the name does not end in .html, or the file cannot be written.
    """
    check_place(path)
    try:
        path.write_text(render(report), "utf-8", errors="replace")
    except OSError as error:
        raise TurnwiseError(
            f"Cannot write {path}: {error.strerror or error}.", "Choose another place with --html."
        ) from error
    return path


def check_place(path: Path) -> None:
    """Make the folder of a page, before hours are spent on what it is to show.

    Raises:
        TurnwiseError: the name does not end in .html, or there can be no such file.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise TurnwiseError(f"--html {path} is no page.", "Give it the ending .html.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TurnwiseError(
            f"Cannot write {path}: {error.strerror or error}.", "Choose another place with --html."
        ) from error
    if path.is_dir():
        raise TurnwiseError(f"--html {path} is a folder.", "Name a file in it.")


def render(report: AuditReport) -> str:
    """The page's text."""
    environment = SandboxedEnvironment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"shown": shown, "cell": cell, "ends": ends, "source": source}
    here = files("turnwise.trainers.audit")
    page = environment.from_string((here / "audit.html.j2").read_text("utf-8"))
    css = (files("turnwise.trainers.report") / "report.css").read_text("utf-8")
    known = audits_of(report.subject)
    return page.render(
        report=report,
        sections=[(known[name], finding, picture(finding)) for name, finding in report.by_urgency],
        kinds=_KINDS,
        css=Markup(css),
        version=turnwise.__version__,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )


def picture(finding: AuditFinding) -> Markup:
    """The curves of a finding."""
    curves = [
        Curve(c.x, c.y, _KINDS[place % len(_KINDS)], c.bands, c.name)
        for place, c in enumerate(finding.curves)
    ]
    whole = all(0 <= y <= 1 for curve in curves for y in curve.y)
    label = f"{finding.axes[1]} over {finding.axes[0]}: {', '.join(curve.name for curve in curves)}"
    return chart(curves, label=label, width=660, height=240, share=whole)


def renderables(report: AuditReport) -> Iterator[RenderableType]:
    """What a terminal shows: each audit with its figures and tables, and what could not be measured."""
    known = audits_of(report.subject)
    for name, finding in report.by_urgency:
        if finding.clear:
            continue
        yield Text(f"\n{name}", style="bold")
        yield Text(f"{known[name].summary}  {source(known[name])}".strip(), style="dim")
        yield from (Text(line) for line in finding.said)
        if finding.figures:
            yield _figures(finding.figures)
        for table in finding.tables:
            yield Text(f"\n{table.title}", style="dim")
            yield _table(table)
            if len(table.rows) > _ROWS:
                yield Text(f"{len(table.rows) - _ROWS} more rows are in --json and --html.", style="dim")
    if clear := [name for name, finding in report.by_urgency if finding.clear]:
        yield Text("\nnothing found", style="bold")
        yield Text(", ".join(clear))
    if report.refused:
        yield Text("\nnot measured", style="bold")
    for refusal in report.refused:
        yield Text(f"{refusal.name}: {refusal.cause}\n  → {refusal.remedy}", style="dim")
    yield from (Text(f"{note}", style="dim") for note in report.notes)


def source(audit: Audit) -> str:
    """The rows of the book and the paper of an audit, in brackets."""
    rows = ", ".join(map(str, audit.rows))
    return (
        f"[row{'s' if len(audit.rows) > 1 else ''} {rows}{f'; arXiv {audit.paper}' if audit.paper else ''}]"
        if rows
        else ""
    )


def shown(figure: AuditFigure) -> str:
    """A figure's value as people read it.

    >>> shown(AuditFigure("x", 0.256, None, "share")), shown(AuditFigure("x", None)), shown(AuditFigure("x", 3.0, None, "count"))
    ('25.6 %', '–', '3')
    """
    return _number(figure.value, figure.form)


def ends(figure: AuditFigure) -> str:
    """A figure's interval; empty where it has none."""
    if figure.interval is None:
        return ""
    low, high = figure.interval
    if not math.isfinite(high - low):
        return "unknown"
    return f"{_number(low, figure.form)} … {_number(high, figure.form)}"


def cell(value: Cell) -> str:
    """A cell of a table.

    >>> cell(0.12345), cell(12), cell(None), cell("x")
    ('0.123', '12', '–', 'x')
    """
    if isinstance(value, float):
        return _number(value, "number") if not value.is_integer() or abs(value) < 2 else f"{value:.0f}"
    return "–" if value is None else str(value)


def _number(value: float | None, form: str) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    if form == "share":
        return f"{100 * value:.1f} %"
    if form == "count":
        return f"{value:.4g}"
    return f"{value:.3g}" if 0 < abs(value) < 0.001 or abs(value) >= 1e4 else f"{value:.3f}"


def _figures(figures: Sequence[AuditFigure]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    for figure in figures:
        table.add_row(
            Text(figure.name),
            Text(shown(figure), justify="right"),
            Text(ends(figure), style="dim"),
            Text(figure.about, style="dim"),
        )
    return table


def _table(rows: AuditTable) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, heading in enumerate(rows.headings):
        table.add_column(
            Text(heading, style="dim"), justify="left" if not place else "right", overflow="fold"
        )
    for row in rows.rows[:_ROWS]:
        table.add_row(*(Text(cell(value)) for value in row))
    return table
