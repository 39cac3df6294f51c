"""Names that a world's documentation gives the arguments of the apps' APIs, and what it says about each."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from turnwise.envs.toolworld.domain import DomainAction
from turnwise.tasks.core import derive_rng

THINGS: Mapping[str, str] = {
    "mail": "mail", "event": "calendar", "file": "files", "contact": "contacts", "request": "payments", "note": "notes",
    "song": "music", "playlist": "music",
}  # fmt: skip
"""Word for what is named by an id → the app whose APIs take it. Elsewhere the same word means something else.
"""
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "key": ("id", "item_id", "which", "identifier"),
    "text": ("query", "words", "text", "phrase"),
    "page": ("page", "page_number", "page_index"),
    "recipient": ("to", "recipient", "receiver", "addressee"),
    "subject": ("subject", "heading", "about"),
    "body": ("body", "content", "message", "text"),
    "guest": ("guest", "person", "participant", "email_address"),
    "date": ("date", "day", "new_date", "on"),
    "cents": ("amount_cents", "cents", "sum_in_cents"),
    "folder": ("folder", "directory", "target"),
    "phone": ("phone", "number", "phone_number"),
    "name": ("name", "label", "called"),
    "title": ("title", "heading", "caption"),
    "note": ("note", "remark", "memo", "comment"),
}
"""Argument → what it may be called."""
MEANINGS: Mapping[str, str] = {
    "page": "Which page, from 1.",
    "subject": "The subject line.",
    "body": "The text of the mail.",
    "folder": "The name of a folder.",
    "title": "The title.",
    "date": "A day, YYYY-MM-DD.",
    "start": "When it begins, HH:MM.",
    "end": "When it ends, HH:MM.",
    "guest": "A mail address.",
    "answer": "What to answer.",
    "name": "The name.",
    "content": "The text, as it shall stand there.",
    "email": "A mail address.",
    "phone": "A phone number.",
    "group": "The name of a group.",
    "cents": "An amount in cents.",
    "text": "The text.",
    "note": "A few words that go with the payment.",
    "mail.recipient": "A mail address.",
    "payments.recipient": "The full name of a contact.",
    "search.text": "Words that must all occur.",
}
"""Argument → what it is; ``app.argument`` and ``search.argument`` come first."""


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
    search = MEANINGS.get(f"search.{argument}") if function.startswith("search_") else None
    return search or MEANINGS.get(f"{app}.{argument}") or MEANINGS[argument]


def _ways(api: str, argument: str) -> tuple[str, ...]:
    if is_id(api, argument) and argument != "key":
        return (f"{argument}_id", argument, "id", f"the_{argument}")
    return SYNONYMS.get(argument, (argument,))
