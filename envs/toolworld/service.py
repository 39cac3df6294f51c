"""Tools of a service desk: what is told about their arguments, whose data they change, and what is put on record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from turnwise.data_file import data_file
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import ActionKind, DomainAction, Written, act
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolSpec


class Argument(NamedTuple):
    """Description of an argument, and how a text that is given for it is tidied; it means the same in all tools of a desk."""

    told: str
    tidy: Literal["text", "upper", "lower"] = "text"


class DeskRecord(NamedTuple):
    """A refusal or a transfer on record."""

    about: str
    reason: str


_TIDIES: Mapping[str, Callable[[str], str]] = {
    "text": str.strip,
    "upper": lambda text: (
        text.strip().removeprefix("#").upper()
    ),  # an id, with or without the sign for a number
    "lower": lambda text: text.strip().lower(),
}


def service_acts(
    package: str, table: str, key: str, functions: Mapping[ActionKind, Iterable[Callable[..., Any]]]
) -> tuple[DomainAction, ...]:
    """The acts of a desk by their kinds, with what its arguments.yaml tells about their arguments.

    What they change belongs to the customer whom a call names (``user_id``), or else to that of the row of ``table`` that it
    names (``key``).
    """
    known = data_file(package, "arguments", dict[str, Argument])

    def owner(db: Database, **given: Any) -> str | None:
        if "user_id" in given:
            return given["user_id"]
        row = db.find(table, given[key])
        return row.user_id if row else None

    return tuple(
        _described(act(one, kind, owner if kind == "write" else None), known)
        for kind, made in functions.items() for one in made
    )  # fmt: skip


def recorded_refusal(db: Database, about: str, reason: str, table: str = "notes") -> Written:
    """Put on record that a request about something was refused."""
    return Written(db.put(table, f"refused {about} {reason}", DeskRecord(about, reason)), "recorded")


def recorded_transfer(db: Database, reason: str, table: str = "notes") -> Written:
    """Put on record that a customer was handed over."""
    return Written(db.put(table, f"transfer {reason}", DeskRecord("transfer", reason)), "transferred")


def _described(made: DomainAction, known: Mapping[str, Argument]) -> DomainAction:
    inner, spec = made.tool, made.tool.spec
    schema = dict(spec.parameters)
    schema["properties"] = {
        name: {**value, "description": known[name].told}
        for name, value in schema.get("properties", {}).items()
    }

    def check(arguments: Mapping[str, Json]) -> dict[str, Any]:
        return inner.check({name: _tidied(known.get(name), value) for name, value in arguments.items()})

    return DomainAction(
        Tool(ToolSpec(spec.name, spec.description, schema), inner.function, check), made.kind, made.owner
    )


def _tidied(argument: Argument | None, value: Json) -> Json:
    if argument is None:
        return value
    if isinstance(value, list):
        return [_tidied(argument, part) for part in value]  # pyright: ignore[reportUnknownVariableType]
    return _TIDIES[argument.tidy](value) if isinstance(value, str) else value
