"""Immutable databases: tables of typed rows, shared between moments, with a hash that is kept up to date.

A change copies a path of a hash trie (``immutables.Map``), so moments share all that did not change and a fork
is a reference. The hash is a sum over rows, so it costs one row, not one database, to keep.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from immutables import Map

from turnwise.tasks.core import Json, canonical
from turnwise.tools.core import ToolError

Row: TypeAlias = Any
"""A NamedTuple of plain values, tuples and NamedTuples; or, in domains from files, a JSON object as a ``Map``."""


class Cell(NamedTuple):
    """A place in a database: one field of one row. ``field`` is "" for the row's existence."""

    table: str
    key: str
    field: str


_WIDTH = 2**128
_SCALARS = frozenset((str, int, float, bool, type(None)))


class Database:
    """Tables by name, rows by key. ``mark`` is the hash, ``touched`` the rows that were ever written."""

    __slots__ = ("_ordered", "mark", "tables", "touched")

    def __init__(
        self,
        tables: Map[str, Map[str, Row]],
        mark: int,
        touched: frozenset[tuple[str, str]] = frozenset(),
        ordered: Mapping[str, tuple[Row, ...]] = {},
    ) -> None:
        self.tables, self.mark, self.touched = tables, mark, touched
        self._ordered = ordered  # rows of tables that were asked for, by their keys

    def untouched(self) -> Database:
        """The same, as if nobody had written in it."""
        return Database(self.tables, self.mark, ordered=self._ordered)

    @staticmethod
    def of(tables: Mapping[str, Mapping[str, Row]]) -> Database:
        """A database that holds these rows."""
        mark = sum(_mark(table, key, row) for table, rows in tables.items() for key, row in rows.items())
        return Database(Map({table: Map(rows) for table, rows in tables.items()}), mark % _WIDTH)

    @property
    def digest(self) -> str:
        """The canonical hash of the content: equal for equal rows, however they came about."""
        return f"{self.mark:032x}"

    def find(self, table: str, key: str) -> Row | None:
        """The row, or None."""
        return self.tables[table].get(key)

    def get(self, table: str, key: str) -> Row:
        """The row of this key.

        Raises:
            ToolError: there is none; keys that look alike are not told, they may be someone else's.
        """
        row = self.tables[table].get(key)
        if row is None:
            raise ToolError(f"{_singular(table)} {key[:60]!r} not found.")
        return row

    def rows(self, table: str) -> list[Row]:
        """All rows of a table in the order of their keys (which is no process's own)."""
        found = self._ordered.get(table)
        if found is None:
            rows = self.tables[table]
            found = tuple(rows[key] for key in sorted(rows))
            self._ordered = {**self._ordered, table: found}
        return list(found)

    def keys(self, table: str) -> list[str]:
        return sorted(self.tables[table])

    def put(self, table: str, key: str, row: Row) -> Database:
        """With this row, in place of what was there."""
        rows = self.tables[table]
        old = rows.get(key)
        mark = self.mark + _mark(table, key, row) - (0 if old is None else _mark(table, key, old))
        tables = self.tables.set(table, rows.set(key, row))
        return self._changed(table, key, tables, mark)

    def drop(self, table: str, key: str) -> Database:
        """Without this row, which must be there."""
        old = self.get(table, key)
        tables = self.tables.set(table, self.tables[table].delete(key))
        return self._changed(table, key, tables, self.mark - _mark(table, key, old))

    def _changed(self, table: str, key: str, tables: Map[str, Map[str, Row]], mark: int) -> Database:
        ordered = {name: rows for name, rows in self._ordered.items() if name != table}
        return Database(tables, mark % _WIDTH, self.touched | {(table, key)}, ordered)

    def update(self, table: str, key: str, **fields: Any) -> Database:
        """With some fields of a row changed."""
        return self.put(table, key, self.get(table, key)._replace(**fields))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Database) and self.mark == other.mark

    def __hash__(self) -> int:
        return hash(self.mark)

    def __repr__(self) -> str:
        return f"Database({self.digest})"


def changes(before: Database, after: Database) -> dict[Cell, str]:
    """Return the differences, field by field, each with its new value as JSON text ("" for a row that is
    gone)."""
    found: dict[Cell, str] = {}
    for table, key in sorted(after.touched | before.touched):
        old, new = before.find(table, key), after.find(table, key)
        if new is None:
            if old is not None:
                found[Cell(table, key, "")] = ""
            continue
        had = {} if old is None else _fields(old)
        for field, value in _fields(new).items():
            if had.get(field) != value:
                found[Cell(table, key, field)] = value
    return found


def plain(value: Any) -> Json:
    """A row or a part of one as JSON."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Map):
        return {key: plain(value[key]) for key in sorted(value)}  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)  # pyright: ignore[reportUnknownArgumentType]
        # most parts are scalars: a call saved for each
        parts = [part if type(part) in _SCALARS else plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
        return dict(zip(fields, parts, strict=True)) if fields else parts
    return value


def frozen(value: Json) -> Any:
    """JSON as a value that nobody can change."""
    if isinstance(value, dict):
        return Map({str(key): frozen(part) for key, part in value.items()})  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    if isinstance(value, list):
        return tuple(frozen(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    return value


def fresh_key(db: Database, table: str, prefix: str, *content: Json) -> str:
    """A key for a new row that depends on what the row is, not on when it is made.

    The order in which things are created must not decide whether a database equals the goal. The same content
    again gets another key.
    """
    salt = 0
    while True:
        number = int(hashlib.blake2b(canonical([*content, salt]).encode(), digest_size=4).hexdigest(), 16)
        key = f"{prefix}{number % 900_000 + 100_000}"
        if db.find(table, key) is None:
            return key
        salt += 1


def near(word: str, known: Iterable[str]) -> str:
    """ " Did you mean …?", or nothing."""
    found = difflib.get_close_matches(word, sorted(known), n=1)
    return f" Did you mean {found[0]!r}?" if found else ""


def _fields(row: Row) -> dict[str, str]:
    data = plain(row)
    return {
        name: canonical(value) for name, value in (data if isinstance(data, dict) else {"": data}).items()
    }


def _mark(table: str, key: str, row: Row) -> int:
    text = canonical([table, key, plain(row)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def _singular(table: str) -> str:
    return table.removesuffix("s").replace("_", " ").capitalize()
