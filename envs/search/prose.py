"""Text on pages beside the facts that questions ask for: history, notices, tables, and the titles of sources."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple

from turnwise.data_file import data_file
from turnwise.envs.search.graph import SourceReport, WorldGraph
from turnwise.envs.search.schema import Relation, schema
from turnwise.envs.worlds.vocabulary import MONTHS

_MOST_ROWS = 12


class ProseTables(NamedTuple):
    """Sentences that answer nothing (prose.yaml)."""

    history: Mapping[str, tuple[str, ...]]  # kind → of it
    any: tuple[str, ...]
    notices: tuple[str, ...]
    papers: tuple[str, ...]


@functools.cache
def _prose() -> ProseTables:
    return data_file("turnwise.envs.search", "prose", ProseTables)


def history(graph: WorldGraph, kind: str, dice: Random) -> list[str]:
    """Eight to fourteen sentences that answer nothing, with names that have nothing to do with it."""
    lines = [*_prose().history.get(kind, ()), *_prose().any]
    return [_filled(graph, line, dice) for line in dice.sample(lines, min(len(lines), dice.randint(8, 14)))]


def notices(graph: WorldGraph, dice: Random) -> list[str]:
    """Return the other sentences on a source's page."""
    return [_filled(graph, line, dice) for line in dice.sample(_prose().notices, dice.randint(2, 5))]


def interspersed(facts: Sequence[str], lines: Sequence[str], dice: Random) -> Iterator[str]:
    """All sentences, each of the two kinds in its own order."""
    left, right = list(facts), list(lines)
    while left or right:
        yield (left if dice.random() * (len(left) + len(right)) < len(left) else right).pop(0)


def source_title(graph: WorldGraph, report: SourceReport, number: int) -> str:
    """Return the title of a source.

    >>> from turnwise.envs.search.graph import WorldSpec
    >>> graph = WorldGraph(WorldSpec(seed="x", passages=300, disputed=0.1))
    >>> titles = [source_title(graph, report, 0) for report in graph.reports_on(0)]
    >>> all(str(report.year) in title for report, title in zip(graph.reports_on(0), titles, strict=True))
    True
    """
    dice = Random(number)
    place = graph.name(graph.first["city"] + dice.randrange(graph.count["city"]))
    match report.source:
        case "register":
            return f"Register of {place}, {report.year}, folio {number + 1}"
        case "newspaper":
            day = f"{dice.randint(1, 28)} {dice.choice(MONTHS)} {report.year}"
            return f"The {place} {dice.choice(_prose().papers)}, {day}"
        case _:
            who = graph.name(graph.first["person"] + dice.randrange(graph.count["person"]))
            return f"Memoirs of {who}, {report.year}, chapter {number + 1}"


def table_of(graph: WorldGraph, entity: int) -> list[str]:
    """A table of what belongs to a region, a school or a company: a row each, only with what is told anywhere."""
    match graph.kind(entity):
        case "region":
            columns: list[tuple[str, Relation | None]] = [
                ("City", None), ("Founded", schema().by_name["city_founded"]), ("People", schema().by_name["population"])
            ]  # fmt: skip
            return _table(graph, "Cities", columns, graph.sources(schema().by_name["region"], entity))
        case "school":
            columns = [
                ("Student", None),
                ("Born", schema().year_of["person"]),
                ("Teacher", schema().by_name["mentor"]),
            ]
            return _table(
                graph,
                "Some who were educated here",
                columns,
                graph.sources(schema().by_name["school"], entity),
            )
        case "company":
            columns = [
                ("Book", None),
                ("Year", schema().year_of["book"]),
                ("Author", schema().by_name["author"]),
            ]
            return _table(graph, "Books", columns, graph.sources(schema().by_name["publisher"], entity))
        case _:
            return []


def _table(
    graph: WorldGraph, title: str, columns: Sequence[tuple[str, Relation | None]], rows: Sequence[int]
) -> list[str]:
    if not rows:
        return []
    lines = [f"{title}:", f"| {' | '.join(name for name, _ in columns)} |"]
    for entity in rows[:_MOST_ROWS]:
        cells = [_cell(graph, entity, relation) for _, relation in columns]
        lines.append(f"| {' | '.join(cells)} |")
    return [
        *lines,
        f"… and {len(rows) - _MOST_ROWS} more." if len(rows) > _MOST_ROWS else "End of the table.",
    ]


def _cell(graph: WorldGraph, entity: int, relation: Relation | None) -> str:
    if relation is None:
        return graph.title(entity)
    if not graph.told(entity, relation):
        return "–"
    value = graph.target(entity, relation)
    return graph.title(value) if relation.target in graph.count else str(value)


def _filled(graph: WorldGraph, line: str, dice: Random) -> str:
    if "{" not in line:
        return line
    place = graph.first["city"] + dice.randrange(graph.count["city"])
    other = graph.first["person"] + dice.randrange(graph.count["person"])
    said = line.format(place=graph.name(place), other=graph.mention(other))
    return said[0].upper() + said[1:]
