"""Calls of every app for every kind of thing that it keeps: list, count, search, show, delete; and those that make one or set its fields."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from turnwise.envs.toolworld.database import Database, fresh_key, plain
from turnwise.envs.toolworld.domain import Written
from turnwise.envs.toolworld.facts import dollars
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolError

PER_PAGE = 10


def shown(row: Any) -> Json:
    """A row as the apps show it: amounts in dollars."""
    data = plain(row)
    for name in ("amount", "balance"):
        if name in data:
            data[name] = dollars(data[name])
    return data


def page_of(rows: list[Any], page: int) -> Json:
    if page < 1:
        raise ToolError("Pages are counted from 1.")
    part = rows[(page - 1) * PER_PAGE : page * PER_PAGE]
    return {"items": [shown(row) for row in part], "page": page, "pages": max(1, -(-len(rows) // PER_PAGE))}


def generic(table: str, thing: str, *, deletable: bool = True) -> list[Callable[..., Any]]:
    """The functions for one table, named after what they do to which thing."""

    def list_all(db: Database, page: int = 1) -> Json:
        return page_of(db.rows(table), page)

    def count(db: Database) -> Json:
        return len(db.tables[table])

    def search(db: Database, text: str, page: int = 1) -> Json:
        words = text.lower().split()
        return page_of([row for row in db.rows(table) if holds(row, words)], page)

    def show(db: Database, key: str) -> Json:
        return shown(db.get(table, key))

    def delete(db: Database, key: str) -> Written:
        return Written(db.drop(table, key), "deleted")

    made: list[Callable[..., Any]] = []
    for function, name, about in (
        (list_all, f"list_{table}", f"All {table}, {PER_PAGE} per page."),
        (count, f"count_{table}", f"How many {table} there are."),
        (
            search,
            f"search_{table}",
            f"The {table} in which all words of the text occur, {PER_PAGE} per page.",
        ),
        (show, f"show_{thing}", f"One {thing}, by its id."),
        (delete, f"delete_{thing}", f"Delete one {thing}, by its id. Cannot be undone."),
    ):
        if function is not delete or deletable:
            function.__name__, function.__doc__ = name, about
            made.append(function)
    return made


def setter(table: str, thing: str, name: str, about: str, /, *, to: Mapping[str, object] = {}, **takes: Any) -> Callable[..., Any]:  # fmt: skip
    """The function that sets fields of one thing: some ``to`` the same at all times, others (field → type) to what it is given."""

    def set_fields(db: Database, **given: Any) -> Written:
        return Written(db.update(table, given.pop(thing), **to, **given), "ok")

    return _typed(set_fields, name, about, {thing: str, **takes})


def creator(
    table: str, thing: str, row: Callable[..., Any], about: str, /, **takes: Any
) -> Callable[..., Any]:
    """The function that makes one thing, ``row(key, …)``, of what it is given (field → type), and tells its id."""

    def create(db: Database, **given: Any) -> Written:
        fields = [given[name] for name in takes]
        key = fresh_key(db, table, thing[0], *fields)
        return Written(db.put(table, key, row(key, *fields)), {thing: key})

    return _typed(create, f"create_{thing}", about, takes)


def _typed(function: Any, name: str, about: str, takes: Mapping[str, Any]) -> Callable[..., Any]:
    """The function with a name, a docstring and typed parameters."""
    hints = {"db": Database, **takes}
    function.__name__, function.__doc__, function.__annotations__ = name, about, hints
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(one, kind) for one in hints])
    return function


def holds(row: Any, words: list[str]) -> bool:
    text = _text(row)
    return all(word in text for word in words)


@functools.lru_cache(maxsize=65536)  # rows are immutable, and most are those of a few shared worlds
def _text(row: Any) -> str:
    return " ".join(str(value) for value in plain(row).values()).lower()
