"""Names that a world's documentation gives the arguments of the apps' APIs, and what it says about each."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from turnwise.data_file import data_file
from turnwise.envs.toolworld.domain import DomainAction
from turnwise.tasks.core import derive_rng

THINGS: Mapping[str, str] = {
    "mail": "mail", "event": "calendar", "file": "files", "contact": "contacts", "request": "payments", "note": "notes",
    "song": "music", "playlist": "music",
}  # fmt: skip
"""Word for what is named by an id → the app whose APIs take it. Elsewhere the same word means something else.
"""


class ManualWords(NamedTuple):
    """Argument → what it may be called, and what it is: ``app.argument`` and ``search.argument`` come first (manual.yaml)."""

    synonyms: Mapping[str, tuple[str, ...]]
    meanings: Mapping[str, str]


_WORDS = data_file("turnwise.envs.toolworld.apps", "manual", ManualWords)


def names(apis: Mapping[str, DomainAction], seed: int, api: str) -> Mapping[str, str]:
    """Return the names that this world's documentation gives the arguments of an API."""
    return _names(seed, api, apis[api].tool.spec.argument_names)


@functools.lru_cache(maxsize=1024)
def _names(seed: int, api: str, arguments: tuple[str, ...]) -> Mapping[str, str]:
    rng = derive_rng("manual", seed, api)
    found: dict[str, str] = {}
    for argument in arguments:
        ways = [way for way in _ways(api, argument) if way not in found.values()]
        found[argument] = rng.choice(ways or [argument])
    return found


def is_id(api: str, argument: str) -> bool:
    """Say whether an argument of an API is the id of a row."""
    return argument == "key" or THINGS.get(argument) == api.partition(".")[0]


def meaning(api: str, argument: str) -> str:
    """Return what the documentation says about an argument."""
    app, _, function = api.partition(".")
    if is_id(api, argument):
        thing = function.partition("_")[2] if argument == "key" else argument
        return f"The id of the {thing}."
    known = _WORDS.meanings
    search = known.get(f"search.{argument}") if function.startswith("search_") else None
    return search or known.get(f"{app}.{argument}") or known[argument]


def _ways(api: str, argument: str) -> tuple[str, ...]:
    if is_id(api, argument) and argument != "key":
        return (f"{argument}_id", argument, "id", f"the_{argument}")
    return _WORDS.synonyms.get(argument, (argument,))
