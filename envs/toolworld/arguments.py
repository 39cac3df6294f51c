"""Arguments of tools: what is told about each, and one spelling of what can be written in several ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turnwise.envs.toolworld.domain import DomainAction
from turnwise.tasks.core import Json
from turnwise.tools.core import Tool, ToolSpec


class Argument(NamedTuple):
    """Description of an argument, and the function that tidies a text given for it."""

    told: str
    tidy: Callable[[str], str] = str.strip


def upper_id(text: str) -> str:
    """An id in capitals, with or without the sign for a number.

    >>> upper_id(" #w4711")
    'W4711'
    """
    return text.strip().removeprefix("#").upper()


def lower_id(text: str) -> str:
    """An id in small letters.

    >>> lower_id("Card_4711 ")
    'card_4711'
    """
    return text.strip().lower()


def described(acts: tuple[DomainAction, ...], known: Mapping[str, Argument]) -> tuple[DomainAction, ...]:
    """The same acts, whose arguments are told about and tidied; an argument means the same in all of them."""
    return tuple(_described(made, known) for made in acts)


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
    return argument.tidy(value) if isinstance(value, str) else value
