"""Index of papers and the parts made after them: ``python -m turnwise.trainers.lab.papers > docs/papers.md``, from the registry and papers.yaml."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

import pydantic

from turnwise.plain_yaml import read_yaml
from turnwise.registry import Component, components
from turnwise.trainers.core import SEAMS

KINDS = (*SEAMS, "schedule", "search")


class BookRow(NamedTuple):
    """A row of the formula book.

    Attributes:
        number: of the row.
        name: of the paper, as the field says.
        paper: its arXiv id, where parts are of it.
        status: whether its main mechanism can be chosen in a recipe and gives the book's numbers.
        parts: that do it, as KIND/NAME.
        how: it works, or what is missing, or why it is not here.
    """

    number: int
    name: str
    paper: str
    status: Literal["works", "in part", "not here"]
    parts: Sequence[str]
    how: str


class Papers(pydantic.BaseModel):
    """The contents of papers.yaml: rows of the book, titles of other papers, and papers that several parts are together."""

    rows: list[BookRow]
    others: Mapping[str, str]
    together: list[tuple[str, str, str]]

    @property
    def names(self) -> dict[str, str]:
        """ArXiv id → name, of every paper."""
        return {**self.others, **{row.paper: row.name for row in self.rows if row.paper}}


@functools.cache
def papers() -> Papers:
    """The data of the page, beside this file.

    >>> row = papers().rows[1]
    >>> row.name, row.status, row.parts[0]
    ('PPR / ReNorm', 'works', 'credit/ppr')
    """
    data = files("turnwise.trainers.lab").joinpath("papers.yaml").read_text("utf-8")
    return Papers.model_validate(read_yaml(data))


def every_component() -> list[Component]:
    """All parts that have papers, in the order in which a batch passes them; schedules and searches last."""
    return [entry for kind in KINDS for entry in components(kind)]


def home(entry: Component) -> str:
    """The file of a part, relative to the repository.

    >>> from turnwise.registry import get_component
    >>> home(get_component("credit", "rloo"))
    'trainers/credit/rloo.py'
    """
    return str(PurePosixPath(*inspect.unwrap(entry.target).__module__.split(".")[1:])) + ".py"


def row(entry: Component) -> str:
    """A line of the table."""
    paper = _linked(papers().names[entry.paper], entry.paper) if entry.paper else "–"
    evidence = entry.bias or entry.objective or "–"
    cells = (
        paper,
        f"`{entry.name}`",
        entry.kind,
        f"[{home(entry)}](../{home(entry)})",
        entry.summary,
        evidence,
    )
    return _line(cells)


def book_row(row: BookRow) -> str:
    """A line of the table of the book's rows."""
    parts = ", ".join(f"`{name}` ({kind})" for kind, _, name in (part.partition("/") for part in row.parts))
    return _line((str(row.number), _linked(row.name, row.paper), row.status, parts or "–", row.how))


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _linked(name: str, paper: str) -> str:
    return f"{name} [{paper}](https://arxiv.org/abs/{paper})" if paper else name


def table(entries: Iterable[Component]) -> str:
    """A Markdown table of these parts, by paper."""
    head = ("paper", "component", "seam", "file", "what it does", "declared bias, measured, or objective")
    ordered = sorted(entries, key=lambda entry: (entry.paper, KINDS.index(entry.kind), entry.name))
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *map(row, ordered)]
    return "\n".join(lines)


def report() -> str:
    """The page."""
    entries, known = every_component(), papers()
    cited = [entry for entry in entries if entry.paper]
    own = [entry for entry in entries if not entry.paper]
    by_status = {
        status: sum(row.status == status for row in known.rows) for status in ("works", "in part", "not here")
    }
    together = [_line((_linked(name, paper), how)) for name, paper, how in known.together]
    return f"""# Papers and where they are

This page is written by `python -m turnwise.trainers.lab.papers` from the registry and `trainers/lab/papers.yaml`;
`tests/trainers/test_papers.py` keeps it up to date and holds its claims against the registry.
{len({entry.paper for entry in cited})} papers, {len(entries)} components, {sum(entry.kind == "credit" for entry in entries)} of them credit rules.

The evidence for a formula is the example worked by hand in its docstring, which runs as a test, together with the
contract tests in `tests/contract/`. A declared bias is compared with exact policy gradients
(`tests/contract/test_parts.py`, figures in [credit-bias.md](credit-bias.md)). The docstring of a rule says what it
leaves out of its paper, and what it adds.

{table(cited)}

## Without a paper

{table(own)}

## Several parts together

| paper | how |
|---|---|
{chr(10).join(together)}

## The list of papers

We keep a list of {len(known.rows)} papers whose formulas we wrote down before we wrote any part, with numbers worked by hand. A row
*works* where a recipe or an evaluation can choose its main mechanism and tests give these numbers; *in part* where a half is missing, which is named;
*not here* where there is nothing, with the reason. At present {by_status["works"]} work, {by_status["in part"]} are here in part, {by_status["not here"]} are not here.

| row | paper | status | parts | how, what is missing, or why |
|---|---|---|---|---|
{chr(10).join(map(book_row, known.rows))}
"""


if __name__ == "__main__":
    print(report(), end="")
