"""Selection that a reader asks of an index, as it stands in an address, and the rows that answer."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urlencode

from turnwise.errors import TurnwiseError
from turnwise.trainers.view.index import TALLY, LogIndex

PAGE = 50
SORTS = {
    "number": "id",
    "return": "total",
    "score": "score",
    "turns": "turns",
    "tokens": "tokens",
    "bad actions": "bad",
    "update": "round",
}
"""Keys by which lists are sorted, and the column that has it."""

COMPARISONS = {"≥": ">=", "≤": "<=", "=": "="}
_WORD = re.compile(r"\w+")
_MOST_CHOICES = 200
_NAMED = "(SELECT id FROM names WHERE kind = ? AND name = ?)"


class Selection(NamedTuple):
    """Choice of a log's episodes and their order. Empty fields ask for nothing."""

    words: str = ""
    outcome: str = ""
    ended: str = ""
    policy: str = ""
    env: str = ""
    suite: str = ""
    part: str = ""
    part_is: str = "≥"
    part_value: str = ""
    knob: str = ""
    knob_is: str = "="
    knob_value: str = ""
    turns_from: str = ""
    turns_to: str = ""
    update: str = ""
    group: str = ""
    task: str = ""
    sort: str = "number"
    order: str = "up"
    page: str = "1"

    @property
    def number(self) -> int:
        """The page, from 1."""
        return int(self.page) if self.page.isdecimal() and 0 < len(self.page) < 9 and int(self.page) else 1

    @property
    def narrowed(self) -> bool:
        """True if it leaves anything out."""
        asked = _asked(self)
        return bool(asked.columns or asked.sets)

    def address(self, **changes: str) -> str:
        """The query part of its address, with these changes; what stands at its default is left out."""
        changed = self._replace(**changes)
        plain = Selection()
        return urlencode(
            {name: value for name, value in changed._asdict().items() if value != getattr(plain, name)}
        )


class EpisodeRow(NamedTuple):
    """A line of a list."""

    id: int
    task: str
    env: str
    policy: str
    outcome: str
    ended: str
    turns: int
    total: float
    score: float
    tokens: int
    bad: int
    update: int | None
    group: int | None
    prompt: str
    error: str


class SelectionTally(NamedTuple):
    """Figures of all episodes that were asked for."""

    total: int
    solved: int
    counting: int
    mean_turns: float


class FoundEpisodes(NamedTuple):
    """One page of what was asked for, and the figures of all pages."""

    rows: tuple[EpisodeRow, ...]
    tally: SelectionTally

    @property
    def total(self) -> int:
        """Number of episodes on all pages."""
        return self.tally.total


class Choices(NamedTuple):
    """Values to choose from, each with the number of episodes that have it."""

    outcomes: tuple[tuple[str, int], ...]
    ends: tuple[tuple[str, int], ...]
    policies: tuple[tuple[str, int], ...]
    envs: tuple[tuple[str, int], ...]
    suites: tuple[tuple[str, int], ...]
    parts: tuple[tuple[str, int], ...]
    knobs: tuple[tuple[str, int], ...]


def read_selection(asked: Mapping[str, str]) -> Selection:
    """The selection in an address; names that mean nothing are left out.

    Raises:
        TurnwiseError: a number is none, or there is no such order.
    """
    found = Selection(**{name: asked[name].strip() for name in Selection._fields if name in asked})
    for name in ("part_value", "turns_from", "turns_to", "update", "group"):
        value = getattr(found, name)
        if value and _number(value) is None:
            raise TurnwiseError(
                f"{name.replace('_', ' ')} is {value!r:.60}, which is no number.", "Write a number."
            )
    for name, known in (("sort", SORTS), ("part_is", COMPARISONS), ("knob_is", COMPARISONS)):
        if getattr(found, name) not in known:
            raise TurnwiseError(
                f"{name} is {getattr(found, name)!r:.60}.", f"It is one of {', '.join(known)}."
            )
    return found


def find(index: LogIndex, selection: Selection, *, most: int = PAGE) -> FoundEpisodes:
    """The rows of the selection's page, and the figures of all its pages."""
    tally, numbers = selected(index, selection, most=most, start=(selection.number - 1) * most)
    return FoundEpisodes(rows_of(index, numbers), tally)


def selected(
    index: LogIndex, selection: Selection, *, most: int = -1, start: int = 0
) -> tuple[SelectionTally, list[int]]:
    """The figures of a selection, and the numbers of its episodes in its order: ``most`` (all, if negative) from ``start`` on."""
    order = "DESC" if selection.order == "down" else "ASC"
    with index.reading() as db:
        source = _chosen(db, selection)
        tally = f"SELECT {TALLY} FROM {source.counted}"
        total, solved, counting, turns = db.execute(tally, source.values).fetchone()
        by = f"{source.sort} {order}" + (f", {source.key}" if source.sort != source.key else "")
        ids = f"SELECT {source.key} AS id FROM {source.listed} ORDER BY {by} LIMIT ? OFFSET ?"
        numbers = [row["id"] for row in db.execute(ids, (*source.values, most, start))]
    return SelectionTally(total, solved or 0, counting or 0, turns / total if total else 0.0), numbers


def rows_of(index: LogIndex, numbers: Sequence[int]) -> tuple[EpisodeRow, ...]:
    """The rows of these episodes, in this order; what is no longer there is left out."""
    with index.reading() as db:
        rows = _rows(db, "id IN (SELECT value FROM json_each(?))", json.dumps(numbers))
    found = {row.id: row for row in rows}
    return tuple(found[number] for number in numbers if number in found)


class _Chosen(NamedTuple):
    """SQL tables to select from, for the tally and for the numbers of a page, with an episode's number and the order in the latter."""

    counted: str
    listed: str
    key: str
    sort: str
    values: tuple[str | float, ...] = ()


def _chosen(db: sqlite3.Connection, selection: Selection) -> _Chosen:
    """All episodes, or those that meet the conditions; what is dear to look for, or comes in another order, is looked for once."""
    asked, column = _asked(selection), SORTS[selection.sort]
    if not asked.columns and not asked.sets:
        return _Chosen("brief", "episodes", "id", column)
    alone = (
        asked.sets[0] if len(asked.sets) == 1 and not asked.columns and not asked.sets[0].outside else None
    )
    tables = [(alone.table, alone.id)] if alone else []
    if asked.columns or column != "id":
        tables.append(("episodes", "episodes.id"))
    tables.append(("brief", "brief.id"))
    (table, key), *joined = tables
    conditions = [alone.where] if alone else [*asked.columns, *(one.condition(key) for one in asked.sets)]
    values = (*asked.values, *(value for one in asked.sets for value in one.values))
    joins = "".join(f" CROSS JOIN {other} ON {number} = {key}" for other, number in joined)
    source = f"{table}{joins} WHERE {' AND '.join(conditions)}"
    again = column != "id" or (asked.sets and not alone)
    if not again:
        return _Chosen(source, source, key, key, values)
    sort = "" if column == "id" else f", episodes.{column}"
    db.execute(f"CREATE TEMP TABLE chosen AS SELECT {key} AS id, code{sort} FROM {source}", values)
    return _Chosen("chosen", "chosen", "id", column)


def _rows(db: sqlite3.Connection, where: str, *values: str | float | None) -> list[EpisodeRow]:
    """The rows of episodes, in the order of the log."""
    found = db.execute(f"SELECT * FROM episodes JOIN texts USING (id) WHERE {where} ORDER BY id", values)
    return list(map(_row, found))


def one(index: LogIndex, number: int) -> EpisodeRow | None:
    """The row of an episode."""
    with index.reading() as db:
        return next(iter(_rows(db, "id = ?", number)), None)


def siblings(index: LogIndex, row: EpisodeRow) -> tuple[EpisodeRow, ...]:
    """The episodes of its group, in the order of the log: of its update and group, or outside training of its task."""
    if row.update is not None and row.group is not None:
        where, values = "round = ? AND batch = ?", (row.update, row.group)
    else:
        where, values = "task = ? AND round IS NULL", (row.task,)
    with index.reading() as db:
        return tuple(_rows(db, where, *values)[:256])


def beside(index: LogIndex, selection: Selection, row: EpisodeRow) -> tuple[int | None, int | None]:
    """The episodes before and after one in the selection's order."""
    where, values = _where(selection)
    column, down = SORTS[selection.sort], selection.order == "down"
    found: list[int | None] = []
    for forward in (False, True):
        greater = forward != down
        compare, order = (">", "ASC") if greater else ("<", "DESC")
        ids, id_order = (">", "ASC") if forward else ("<", "DESC")
        here = f"(SELECT {column} FROM episodes WHERE id = ?)"
        condition = f"({column} {compare} {here} OR ({column} IS {here} AND id {ids} ?))"
        joined = f"{where} AND {condition}" if where else f" WHERE {condition}"
        with index.reading() as db:
            near = db.execute(
                f"SELECT id FROM episodes{joined} ORDER BY {column} {order}, id {id_order} LIMIT 1",
                (*values, row.id, row.id, row.id),
            ).fetchone()
        found.append(near["id"] if near else None)
    return found[0], found[1]


def choices(index: LogIndex) -> Choices:
    """Return what the fields of a selection can be, most frequent first."""
    with index.reading() as db:
        rows = db.execute("SELECT kind, name, n FROM names ORDER BY n DESC, name").fetchall()

    def of(kind: str) -> tuple[tuple[str, int], ...]:
        return tuple((row["name"], row["n"]) for row in rows if row["kind"] == kind)[:_MOST_CHOICES]

    return Choices(of("outcome"), of("ended"), of("policy"), of("env"), of("suite"), of("part"), of("knob"))


def outcomes_by_task(index: LogIndex) -> dict[str, tuple[EpisodeRow, ...]]:
    """The episodes of each task, in the order in which tasks were first played."""
    found: dict[str, list[EpisodeRow]] = {}
    with index.reading() as db:
        for row in _rows(db, "id <= 20000"):
            found.setdefault(row.task, []).append(row)
    return {task: tuple(rows) for task, rows in found.items()}


def _row(row: sqlite3.Row) -> EpisodeRow:
    return EpisodeRow(
        row["id"], row["task"], row["env"], row["policy"], row["outcome"], row["ended"], row["turns"], row["total"],
        row["score"], row["tokens"], row["bad"], row["round"], row["batch"], row["prompt"], row["error"],
    )  # fmt: skip


class _Set(NamedTuple):
    """Episodes that another table knows: words that were said, a part of the reward, a knob. Or those ``outside`` of it."""

    table: str
    id: str
    where: str
    values: tuple[str | float, ...]
    outside: bool = False

    def condition(self, key: str) -> str:
        """That the episode whose number this is belongs to it."""
        return f"{key} {'NOT ' if self.outside else ''}IN (SELECT {self.id} FROM {self.table} WHERE {self.where})"


class _Asked(NamedTuple):
    """The conditions of a selection: on columns of ``episodes`` with their values, and by sets."""

    columns: tuple[str, ...]
    values: tuple[str | float, ...]
    sets: tuple[_Set, ...]


def _where(selection: Selection) -> tuple[str, list[str | float]]:
    """The conditions of a selection from ``episodes``."""
    asked = _asked(selection)
    conditions = [*asked.columns, *(one.condition("id") for one in asked.sets)]
    values = [*asked.values, *(value for one in asked.sets for value in one.values)]
    return (" WHERE " + " AND ".join(conditions) if conditions else ""), values


def _asked(selection: Selection) -> _Asked:
    found: list[tuple[str, str | float]] = []
    for column in ("outcome", "ended", "policy", "env", "suite", "task"):
        if value := getattr(selection, column):
            found.append((f"{column} = ?", value))
    for name, condition in (
        ("turns_from", "turns >= ?"), ("turns_to", "turns <= ?"), ("update", "round = ?"), ("group", "batch = ?")
    ):  # fmt: skip
        if (number := _number(getattr(selection, name))) is not None:
            found.append((condition, number))
    sets = [one for one in (_knob_set(selection), _part_set(selection), _word_set(selection)) if one]
    return _Asked(tuple(condition for condition, _ in found), tuple(value for _, value in found), tuple(sets))


def _word_set(selection: Selection) -> _Set | None:
    wanted = " ".join(f'"{word}"*' for word in _WORD.findall(selection.words))
    return _Set("words", "words.rowid", "words MATCH ?", (wanted,)) if wanted else None


def _part_set(selection: Selection) -> _Set | None:
    """A part that an episode lacks is 0, so that it is among those whose part is at most 0."""
    wanted = _number(selection.part_value)
    if not selection.part or wanted is None:
        return None
    sign = COMPARISONS[selection.part_is]
    zero_too = {">=": wanted <= 0, "<=": wanted >= 0, "=": wanted == 0}[sign]
    where = f"name = {_NAMED} AND {'NOT ' if zero_too else ''}number {sign} ?"
    return _Set("marks", "marks.episode", where, ("part", selection.part, wanted), zero_too)


def _knob_set(selection: Selection) -> _Set | None:
    if not selection.knob or not selection.knob_value:
        return None
    number, sign = _number(selection.knob_value), COMPARISONS[selection.knob_is]
    where = f"name = {_NAMED} AND {'text' if number is None else 'number'} {sign} ?"
    value = selection.knob_value if number is None else number
    return _Set("marks", "marks.episode", where, ("knob", selection.knob, value))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None


def ids_of(rows: Sequence[EpisodeRow]) -> list[int]:
    """The numbers of rows."""
    return [row.id for row in rows]
