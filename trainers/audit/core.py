"""Findings of an audit: figures with their intervals, tables, curves, and sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from turnwise.agents.evaluation.statistics import Estimate, Interval
from turnwise.tasks.core import Json

Cell: TypeAlias = str | int | float | None
Form: TypeAlias = Literal["share", "number", "count"]


class AuditFigure(NamedTuple):
    """A named value; None where it is not defined, such as a share of nothing.

    Attributes:
        form: a share between 0 and 1 is shown in per cent.
        interval: 95 %, where it is known.
    """

    name: str
    value: float | None
    interval: Interval | None = None
    form: Form = "number"
    about: str = ""


class AuditTable(NamedTuple):
    """Rows under headings; floats are shown with three digits."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class AuditCurve(NamedTuple):
    """A line of a picture: all curves of a finding stand in one."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    bands: Sequence[Interval] = ()


@dataclass(frozen=True)
class AuditFinding:
    """The result of one audit.

    Attributes:
        figures: values with their intervals.
        tables: what the figures are made of.
        curves: of one picture, whose axes ``axes`` names.
        said: sentences for whoever reads the figures, the verdict first.
        data: what only ``--json`` shows, such as ids of tasks.
        failures: reasons for an exit code of 1, which are said too.
        pressing: how much of it asks for a correction; what asks most stands first on a page.
        clear: True if it looked for defects and found none; a terminal only names it.
    """

    figures: Sequence[AuditFigure] = ()
    tables: Sequence[AuditTable] = ()
    curves: Sequence[AuditCurve] = ()
    axes: tuple[str, str] = ("", "")
    said: Sequence[str] = ()
    data: Mapping[str, Json] = field(default_factory=dict[str, Json])
    failures: Sequence[str] = ()
    pressing: float = 0.0
    clear: bool = False

    def value(self, name: str) -> float | None:
        """The figure of that name."""
        return next(figure.value for figure in self.figures if figure.name == name)

    def to_json(self) -> dict[str, Json]:
        """Everything as plain values; an end that is not known is null."""
        return {
            "figures": {
                figure.name: {
                    "value": _known(figure.value),
                    "interval": _ends(figure.interval),
                    "form": figure.form,
                }
                for figure in self.figures
            },
            "tables": [
                {
                    "title": t.title,
                    "headings": [*t.headings],
                    "rows": [[_cell(c) for c in row] for row in t.rows],
                }
                for t in self.tables
            ],
            "curves": [
                {"name": c.name, "x": [*c.x], "y": [*map(_known, c.y)], "bands": [*map(_ends, c.bands)]}
                for c in self.curves
            ],
            "said": [*self.said],
            **({"data": dict(self.data)} if self.data else {}),
            **({"failures": [*self.failures]} if self.failures else {}),
        }


class Audit(NamedTuple):
    """A registered audit.

    Attributes:
        name: of its function and its file.
        rows: of the formula book.
        paper: its arXiv id; "" where the book has none.
        find: subject and options → finding.
        named: made only where it is named, since its inputs mean something else than in the other audits.
    """

    name: str
    rows: tuple[int, ...]
    paper: str
    find: Callable[..., AuditFinding]
    named: bool = False

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.find.__doc__ or "").strip().partition("\n")[0]


_Found = TypeVar("_Found", bound=Callable[..., AuditFinding])
MARK = "__turnwise_audit__"


def audit(*rows: int, paper: str = "", named: bool = False) -> Callable[[_Found], _Found]:
    """Mark a function as the audit of its file, with the rows of the formula book that it is of."""

    def mark(find: _Found) -> _Found:
        setattr(find, MARK, Audit(getattr(find, "__name__", ""), rows, paper, find, named))
        return find

    return mark


def share(name: str, estimate: Estimate, about: str = "") -> AuditFigure:
    """An estimate of a share as a figure."""
    return AuditFigure(name, estimate.mean, estimate.interval, "share", about)


def count(name: str, value: float, about: str = "") -> AuditFigure:
    """A number of things as a figure."""
    return AuditFigure(name, value, None, "count", about)


def _known(value: Any) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _cell(cell: Cell) -> Cell:
    return cell if not isinstance(cell, float) else _known(cell)


def _ends(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [_known(end) for end in interval]
