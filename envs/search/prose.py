"""What stands on pages beside the facts that questions ask for: history, notices, tables, and the titles of sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from turnwise.envs.search.graph import SourceReport, WorldGraph
from turnwise.envs.search.schema import BY_NAME, YEAR_OF, Relation

_MOST_ROWS = 12
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_PAPERS = ("Courier", "Gazette", "Herald", "Chronicle", "Mercury", "Observer")
_HISTORY = {
    "person": (
        "Letters from these years tell of long walks and of little sleep.",
        "A bust of {other} stood on the writing desk.",
        "The winter after brought an illness that lasted until spring.",
        "A street in {place} bears the family's name, though nobody of it ever lived there.",
        "Of the notebooks, eleven survive, most of them water-stained.",
        "An acquaintance with {other} came to nothing.",
        "Contemporaries praised a dry wit and a poor memory for names.",
        "A planned journey to {place} was put off three times and then forgotten.",
        "What was said of a quarrel with {other} rests on a single postcard.",
        "The house was let to a piano tuner in later years.",
    ),
    "city": (
        "The old harbour silted up within two generations.",
        "Markets are held on the second Tuesday of the month.",
        "A fire destroyed the rope works and eleven houses beside them.",
        "The clock of the town hall was a gift of {other}, who never saw it go.",
        "Trams ran to the quarry until the bridge was closed.",
        "A plan for a canal to {place} was drawn twice and dug once, for forty paces.",
        "Visitors remark on the tiled roofs and on the wind.",
        "Its carnival is said to have been forbidden by {other}, without effect.",
    ),
    "company": (
        "The first workshop stood behind a bakery.",
        "A strike of five weeks ended with a shared breakfast.",
        "The accounts of three years were lost in a flood.",
        "An offer by {other} to buy the whole was refused by one vote.",
        "A branch in {place} was opened and closed in one summer.",
        "Its sign, a brass heron, was stolen twice.",
        "Samples were shown at fairs and mostly brought home again.",
    ),
}
_ANY = (
    "Little is known of the years between.",
    "The archive in {place} holds a few papers on it.",
    "A lecture by {other} on the matter was poorly attended.",
    "Opinions on this are divided to the present day.",
    "The story that {other} had a hand in it has no foundation.",
    "A commemorative plate was sold out within a week.",
)
_NOTICES = (
    "The fair at {place} is put off on account of the weather.",
    "{other} is thanked for a gift of books.",
    "A grey mare has strayed; the finder is asked to come forward.",
    "The bridge towards {place} stays closed to carts.",
    "A reading by {other} was well received.",
    "The price of coal has risen again.",
    "Of the flood at {place} no new reports have come.",
)


def history(graph: WorldGraph, kind: str, dice: Random) -> list[str]:
    """Eight to fourteen sentences that answer nothing, with names that have nothing to do with it."""
    lines = [*_HISTORY.get(kind, ()), *_ANY]
    return [_filled(graph, line, dice) for line in dice.sample(lines, min(len(lines), dice.randint(8, 14)))]


def notices(graph: WorldGraph, dice: Random) -> list[str]:
    """What else a source has on its page."""
    return [_filled(graph, line, dice) for line in dice.sample(_NOTICES, dice.randint(2, 5))]


def interspersed(facts: Sequence[str], lines: Sequence[str], dice: Random) -> Iterator[str]:
    """All sentences, each of the two kinds in its own order."""
    left, right = list(facts), list(lines)
    while left or right:
        yield (left if dice.random() * (len(left) + len(right)) < len(left) else right).pop(0)


def source_title(graph: WorldGraph, report: SourceReport, number: int) -> str:
    """What a source is called.

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
            day = f"{dice.randint(1, 28)} {dice.choice(_MONTHS)} {report.year}"
            return f"The {place} {dice.choice(_PAPERS)}, {day}"
        case _:
            who = graph.name(graph.first["person"] + dice.randrange(graph.count["person"]))
            return f"Memoirs of {who}, {report.year}, chapter {number + 1}"


def table_of(graph: WorldGraph, entity: int) -> list[str]:
    """A table of what belongs to a region, a school or a company: a row each, only with what is told anywhere."""
    match graph.kind(entity):
        case "region":
            columns: list[tuple[str, Relation | None]] = [
                ("City", None), ("Founded", BY_NAME["city_founded"]), ("People", BY_NAME["population"])
            ]  # fmt: skip
            return _table(graph, "Cities", columns, graph.sources(BY_NAME["region"], entity))
        case "school":
            columns = [("Student", None), ("Born", YEAR_OF["person"]), ("Teacher", BY_NAME["mentor"])]
            return _table(
                graph, "Some who were educated here", columns, graph.sources(BY_NAME["school"], entity)
            )
        case "company":
            columns = [("Book", None), ("Year", YEAR_OF["book"]), ("Author", BY_NAME["author"])]
            return _table(graph, "Books", columns, graph.sources(BY_NAME["publisher"], entity))
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
