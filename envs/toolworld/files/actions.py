"""Acts of the tools of a domain from files: four operations on tables, told as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from immutables import Map

from turnwise.envs.toolworld.database import Database, fresh_key, frozen, plain
from turnwise.envs.toolworld.domain import DomainAction, Written
from turnwise.errors import EnvError
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolError, ToolSpec
from turnwise.tools.schema import tool_of_schema


def act_of(folder: str, entry: Mapping[str, Any], tables: set[str]) -> DomainAction:
    """The act of an entry of ``tools.json``; its operation is on one of ``tables``.

    Raises:
        EnvError: its operation or its schema is none.
    """
    does: Mapping[str, Any] = entry.get("does", {})
    verb = next((verb for verb in _OPERATIONS if verb in does), None)
    if verb is None or does[verb] not in tables:
        raise EnvError(
            f"{folder}/tools.json: {entry.get('name')} does nothing that is known.",
            f"`does` has one of {', '.join(_OPERATIONS)} with a table of db.json.",
        )
    operation = _OPERATIONS[verb]

    def run(db: Database, **arguments: Any) -> Written:
        return operation(db, does, arguments)

    spec = ToolSpec(entry["name"], entry.get("description", ""), entry["parameters"])
    try:
        return DomainAction(tool_of_schema(spec, run), entry.get("kind", "read"))
    except ValueError as error:
        raise EnvError(str(error), f"Repair {folder}/tools.json.") from None


def _get(db: Database, does: Mapping[str, Any], given: Mapping[str, Any]) -> Written:
    key = str(_filled(does["key"], given))
    return Written(db, plain(db.get(does["get"], key)), key)


def _find(db: Database, does: Mapping[str, Any], given: Mapping[str, Any]) -> Written:
    wanted: Mapping[str, Any] = _filled(does["where"], given)
    found = [
        key for key in db.keys(does["find"])
        if all(plain(db.get(does["find"], key).get(field)) == value for field, value in wanted.items())
    ]  # fmt: skip
    if not found:
        raise ToolError("Nothing was found.")
    return Written(db, found, found[0])


def _set(db: Database, does: Mapping[str, Any], given: Mapping[str, Any]) -> Written:
    table, key = does["set"], str(_filled(does["key"], given))
    row: Map[str, Any] = db.get(table, key)
    for field, value in _filled(does.get("require", {}), given).items():
        if plain(row.get(field)) != value:
            raise ToolError(f"{field} is {plain(row.get(field))!r}, not {value!r}.")
    for field, value in _filled(does["fields"], given).items():
        row = row.set(field, frozen(value))
    return Written(db.put(table, key, row), plain(row))


def _add(db: Database, does: Mapping[str, Any], given: Mapping[str, Any]) -> Written:
    fields: Mapping[str, Json] = _filled(does["fields"], given)
    key = fresh_key(db, does["add"], does.get("prefix", ""), dict(fields))
    return Written(db.put(does["add"], key, frozen(dict(fields))), key)


_OPERATIONS: Mapping[str, Callable[[Database, Mapping[str, Any], Mapping[str, Any]], Written]] = {
    "get": _get,
    "find": _find,
    "set": _set,
    "add": _add,
}


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    """With ``$name`` replaced by the argument of that name."""
    if isinstance(value, str) and value.startswith("$"):
        return given.get(value[1:])
    if isinstance(value, dict):
        return {key: _filled(part, given) for key, part in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
