"""The words of function calling: values by kind, how they are said, and what belongs to which split.

What is told in train is never told in dev or test: names and words of each list are dealt out to the splits, and so
are the ways to say things (:func:`of_split`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from turnwise.data_file import data_file
from turnwise.envs.worlds.vocabulary import MONTHS, NUMBERS
from turnwise.tasks.core import Json, Split

Item = TypeVar("Item")


_FORMS: Mapping[str, tuple[str, str]] = {
    "date": (r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", "YYYY-MM-DD, such as 2031-05-03"),
    "time": (r"([01]\d|2[0-3]):[0-5]\d", "HH:MM in 24 hours, such as 09:30"),
    "folder": (r"(/[^/]+)+", "an absolute path, such as /reports"),
}


class CallWords(NamedTuple):
    """Words that values are made of, and that values are asked for by (words.yaml)."""

    pools: Mapping[str, tuple[str, ...]]
    matters: tuple[str, ...]
    endings: tuple[str, ...]
    vague: Mapping[str, tuple[str, ...]]  # kind → what a user says who leaves a value out
    asked: Mapping[str, tuple[str, ...]]  # kind → the words by which one asks for a value, beside its name


@functools.cache
def call_words() -> CallWords:
    """Return the words of values."""
    return data_file("turnwise.envs.functioncall", "words", CallWords)


@functools.cache
def phrases() -> Mapping[str, tuple[str, ...]]:
    """Name → ways to word a request (phrases.yaml)."""
    return data_file("turnwise.envs.functioncall", "phrases", dict[str, tuple[str, ...]])


def of_split(items: Sequence[Item], split: Split) -> Sequence[Item]:
    """The part of a list that belongs to a split: the last quarter is test's, the one before it dev's.

    >>> [list(of_split("abcd", split)) for split in Split]
    [['a', 'b'], ['c'], ['d']]
    """
    quarter = max(1, len(items) // 4)
    cuts = {Split.TRAIN: (0, -2 * quarter), Split.DEV: (-2 * quarter, -quarter), Split.TEST: (-quarter, None)}
    start, end = cuts[split]
    return items[start:end]


@functools.cache
def _pool(name: str, split: Split) -> Sequence[str]:
    return of_split(call_words().pools[name], split)


def _word(rng: Random, split: Split, pool: str) -> str:
    return rng.choice(_pool(pool, split))


def draw_value(rng: Random, split: Split, kind: str) -> Json:
    """A value of a kind, of the words of a split. Ids are drawn where the rows are that have them."""
    base, _, rest = kind.partition(":")
    match base:
        case "count":
            low, high = map(int, rest.split("-"))
            return rng.randint(low, high)
        case "amount":
            low, high = map(int, rest.split("-"))
            return (
                rng.randint(10 * low, 10 * high) / 10
                if rng.random() < 0.7
                else rng.randint(max(1, low), high)
            )
        case "flag":
            return False
        case "choice":
            return rng.choice(rest.split(","))
        case "date":
            return f"20{rng.randint(31, 33)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        case "time":
            return f"{rng.randint(7, 21):02}:{rng.choice((0, 10, 15, 30, 45, 50)):02}"
        case "people":
            return sorted({_person(rng, split) for _ in range(rng.randint(1, 3))})
        case "texts":
            return [_word(rng, split, "texts")]
        case _:
            return _said_word(rng, split, base)


def _person(rng: Random, split: Split) -> str:
    return f"{_word(rng, split, 'first')} {_word(rng, split, 'last')}"


def _said_word(rng: Random, split: Split, base: str) -> str:
    match base:
        case "person":
            return _person(rng, split)
        case "title":
            return f"{_word(rng, split, 'adjective')} {_word(rng, split, 'noun')}"
        case "filename":
            name = f"{_word(rng, split, 'adjective')}_{_word(rng, split, 'noun')}"
            return f"{name}.{rng.choice(call_words().endings)}"
        case "folder":
            return f"/{_word(rng, split, 'folderword')}"
        case "place":
            return f"{_word(rng, split, 'placeword')} {rng.choice(('Hall', 'House', 'Room'))}"
        case "street":
            return f"{rng.randint(1, 90)} {_word(rng, split, 'streetword')} {rng.choice(('Lane', 'Road', 'Street'))}"
        case "product":
            return f"{_word(rng, split, 'stuff')} {_word(rng, split, 'ware')} {rng.choice('ABCDEFGHKLM')}{rng.randint(1, 9)}"
        case "topic":
            return f"{_word(rng, split, 'topic')} {rng.choice(call_words().matters)}"
        case "symbol":
            return "".join(rng.choice("ABCDEFGHIKLMNOPRSTUVXZ") for _ in range(4))
        case "plate":
            return f"{''.join(rng.choice('ABCDEFGHKLMNPRSTUVXZ') for _ in range(2))}-{rng.randint(100, 999)}"
        case "flight":
            return f"{rng.choice(('TW', 'KX', 'QN', 'VB'))}{rng.randint(100, 999)}"
        case "seat":
            return f"{rng.randint(1, 40)}{rng.choice('ABCDEF')}"
        case "phone":
            return f"555-{rng.randint(1000, 9999)}"
        case _:
            return _word(rng, split, base)


def few_of(rng: Random, split: Split, kind: str, n: int) -> list[Json]:
    """At most so many values of a kind; all of a choice."""
    base, _, rest = kind.partition(":")
    return rest.split(",") if base == "choice" else [draw_value(rng, split, kind) for _ in range(n)]


def schema_of(kind: str) -> dict[str, Json]:
    """The JSON schema of a kind of value."""
    base, _, rest = kind.partition(":")
    match base:
        case "count":
            low, high = map(int, rest.split("-"))
            return {"type": "integer", "minimum": low, "maximum": high}
        case "amount":
            return {"type": "number", "minimum": 0}
        case "flag":
            return {"type": "boolean"}
        case "choice":
            return {"type": "string", "enum": rest.split(",")}
        case "people" | "texts":
            return {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1}
        case _:
            return {"type": "string"}


def form_of(kind: str, value: Json) -> str:
    """Return the form that a value of a kind must have and lacks; "" where it lacks none.

    >>> form_of("date", "3 May 2031"), form_of("date", "2031-05-03"), form_of("title", "3 May")
    ('YYYY-MM-DD, such as 2031-05-03', '', '')
    """
    pattern, told = _FORMS.get(kind, ("", ""))
    return "" if not pattern or re.fullmatch(pattern, str(value)) else told


def is_number(kind: str) -> bool:
    return kind.partition(":")[0] in ("count", "amount")


def said(rng: Random, kind: str, value: Json, *, spoken: bool) -> str:
    """A value in a request; ``spoken``: dates, times and small numbers in words."""
    base = kind.partition(":")[0]
    if isinstance(value, list):
        return value[0] if len(value) == 1 else f"{', '.join(value[:-1])} and {value[-1]}"
    if base in ("title", "texts", "topic"):
        return f'"{value}"'
    if spoken and base == "date" and rng.random() < 0.7:
        year, month, day = str(value).split("-")
        return f"{int(day)} {MONTHS[int(month) - 1]} {year}"
    if spoken and isinstance(value, int) and 1 < value < len(NUMBERS):
        return NUMBERS[value]
    if spoken and base == "time" and rng.random() < 0.5:
        hour, minute = map(int, str(value).split(":"))
        return f"{(hour - 1) % 12 + 1}:{minute:02} {'am' if hour < 12 else 'pm'}"
    return str(value)
