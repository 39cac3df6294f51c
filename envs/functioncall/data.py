"""The data behind the functions: immutable tables, what each verb does to them, and their key."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, TypeAlias, cast

from turnwise.envs.functioncall.interfaces import DataFunction, DataTable, tables
from turnwise.envs.functioncall.vocabulary import draw_value, few_of
from turnwise.tasks.core import Json, Split, canonical, digest
from turnwise.tools.core import ToolError

Row: TypeAlias = Mapping[str, Json]
Tables: TypeAlias = Mapping[str, Mapping[str, Row]]
_SPACE = 1 << 64


class CallData(NamedTuple):
    """Tables. ``key`` sums the hashes of the rows that came and, less them, of those that went since the beginning:
    it is 0 at first, and equal for equal data in whatever order that came about."""

    tables: Tables
    key: int = 0

    def row(self, table: str, key: Json) -> Row:
        """A row.

        Raises:
            ToolError: there is none of this id.
        """
        rows = self.tables.get(table, {})
        if key not in rows:
            raise ToolError(f"404: there is no {key!r:.40} among the {table}.")
        return rows[key]

    def with_row(self, table: str, key: str, row: Row | None) -> CallData:
        """The data with a row put in place of what was there; None takes it away."""
        rows = dict(self.tables.get(table, {}))
        change = 0
        if key in rows:
            change -= _hash(table, key, rows.pop(key))
        if row is not None:
            rows[key] = row
            change += _hash(table, key, row)
        return CallData({**self.tables, table: rows}, (self.key + change) % _SPACE)


def _hash(table: str, key: str, row: Row) -> int:
    return int(digest(table, key, folded(row)), 16)


def folded(value: Any) -> Any:
    """A value as it is compared: texts without capitals and closing stop, which a user who says them does not mean.

    >>> folded({"comments": ["Called back.", "called back"], "votes": 3})
    {'comments': ['called back'], 'votes': 3}
    """
    kind = type(value)
    if kind is str:
        return value.casefold().rstrip(".! ")
    if kind is int or kind is float or kind is bool:  # asking whether these are mappings takes longest
        return value
    if isinstance(value, Mapping):
        return {key: folded(one) for key, one in cast("Mapping[str, Json]", value).items()}
    return sorted({*map(folded, cast("list[Json]", value))}) if isinstance(value, list) else value


class CallAnswer(NamedTuple):
    """Answer of a call, and the data after it. ``mark`` is a text that is equal for equivalent calls."""

    result: Json
    data: CallData
    mark: str


def carry_out(one: DataFunction, arguments: Mapping[str, Json], data: CallData) -> CallAnswer:
    """Do what a function does. ``arguments`` are under our names; those that are left out have their defaults.

    Raises:
        ToolError: a row is not there.
    """
    return _carried_out(_CarriedCall(one, arguments, data))


class _CarriedCall:
    """A call on certain data; the same one again where these are the same tables, and not only equal ones."""

    __slots__ = ("arguments", "data", "one", "said")

    def __init__(self, one: DataFunction, arguments: Mapping[str, Json], data: CallData) -> None:
        self.one, self.arguments, self.data = one, arguments, data
        self.said = repr(arguments)  # tells 1 from 1.0 and from true, and the order of an object's fields

    def __hash__(self) -> int:
        return hash((self.one.words, self.said, id(self.data.tables)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _CarriedCall)
            and other.data.tables is self.data.tables
            and other.one is self.one
            and other.said == self.said
        )


@functools.lru_cache(
    maxsize=8192
)  # a plan is carried out to know its end, and then by each episode of a group
def _carried_out(call: _CarriedCall) -> CallAnswer:
    done, data = _done(call.one, call.arguments, call.data)
    return CallAnswer(done, data, _mark(call.one, call.arguments))


def _mark(one: DataFunction, arguments: Mapping[str, Json]) -> str:
    return f"{one.words} {canonical(folded(arguments))}"


def _done(one: DataFunction, arguments: Mapping[str, Json], data: CallData) -> tuple[Json, CallData]:
    """The result of a call and the data after it."""
    table = tables()[one.table]
    given = _flat(one, arguments)
    if one.verb == "find":
        rows = data.tables.get(one.table, {}).items()
        wanted = [(name, folded(value)) for name, value in given.items()]
        found = [_shown(table, key, row) for key, row in rows if _fits(row, wanted)]
        return found, data
    for parameter in one.parameters:
        kind, _, other = parameter.kind.partition(":")
        if kind == "id":
            data.row(other, given[parameter.name])
    if one.verb == "add":
        row = {**one.sets, **given}
        key = _fresh(table, data, row)
        return {"id": key}, data.with_row(one.table, key, row)
    key = given.pop(one.target)
    row = data.row(one.table, key)
    if one.verb == "get":
        return {"id": key, **row}, data
    if one.verb == "remove":
        return {"status": "ok"}, data.with_row(one.table, key, None)
    if one.verb == "append":
        given = {name: sorted({*row.get(name, ()), *value}) for name, value in given.items()}
    return {"status": "ok"}, data.with_row(one.table, key, {**row, **one.sets, **given})


def fits(row: Row, wanted: Mapping[str, Json]) -> bool:
    """Say whether a row has these values; capitals do not matter."""
    return _fits(row, [(name, folded(value)) for name, value in wanted.items()])


def _fits(row: Row, wanted: Sequence[tuple[str, Json]]) -> bool:
    return all(name in row and folded(row[name]) == value for name, value in wanted)


def _shown(table: DataTable, key: str, row: Row) -> dict[str, Json]:
    shown = {"id": key, **row}
    for name in table.hidden:
        shown.pop(name, None)
    return shown


def _flat(one: DataFunction, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """Arguments as fields of a row: objects opened, defaults filled in."""
    flat: dict[str, Json] = {}
    for parameter in one.parameters:
        value = arguments.get(parameter.name, parameter.default)
        if value is None:
            continue
        flat.update(value if parameter.fields else {parameter.name: value})
    return flat


def _fresh(table: DataTable, data: CallData, row: Row) -> str:
    """An id that follows from the row alone, so that new rows are the same in whatever order they come."""
    number = int(digest(table.name, row), 16) % 9000
    while (key := f"{table.prefix}-{1000 + number}") in data.tables.get(table.name, {}):
        number = (number + 1) % 9000
    return key


def in_order(table: DataTable, row: Row) -> bool:
    """Say whether no field of a row is earlier than what must come before it."""
    return all(row[late] >= row[early] for late, early in table.since.items() if {late, early} <= row.keys())


def draw_tables(
    rng: Random, split: Split, names: Sequence[str], rows: int, *, ordered: bool = True
) -> dict[str, dict[str, Row]]:
    """Tables with so many rows each; what rows are sought by is shared by several. ``ordered``: dates by their sense."""
    drawn: dict[str, dict[str, Row]] = {}
    for name in names:
        table = tables()[name]
        shared = {
            field: few_of(rng, split, kind, 3)
            for field, kind in table.fields.items()
            if field in table.filters
        }
        keys = [f"{table.prefix}-{number}" for number in rng.sample(range(100, 1000), rows)]
        called: set[Json] = set()
        drawn[name] = {}
        for key in keys:
            row = {
                field: rng.choice(shared[field])
                if field in shared
                else rng.choice(sorted(drawn[kind[3:]]))
                if kind.startswith("id:")
                else draw_value(rng, split, kind)
                for field, kind in table.fields.items()
            }
            while table.key and row[table.key] in called:
                row[table.key] = draw_value(rng, split, table.fields[table.key])
            called.add(row.get(table.key))
            if ordered and table.since and not in_order(table, row):
                for late, early in table.since.items():
                    row[late], row[early] = row[early], row[late]
            drawn[name][key] = row
    return drawn
