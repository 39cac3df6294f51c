"""The words of function calling: values by kind, how they are said, and what belongs to which split.

What is told in train is never told in dev or test: names and words of each list are dealt out to the splits, and so
are the ways to say things (:func:`of_split`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeVar

from turnwise.envs.worlds.vocabulary import MONTHS, NUMBERS
from turnwise.tasks.core import Json, Split

Item = TypeVar("Item")


def _list(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST = _list(
    "Ada Ben Cleo Dan Eve Femi Gus Hana Ines Jack Kim Leo Mia Ned Ora Pia Quin Rosa Sami Tess Uma Vic Wen Yara Zoe Amir "
    "Bela Carl Dora Emil Faye Gita Hugo Iris Jens Kaja"
)
_LAST = _list(
    "Finch Osei Marsh Ruiz Lindqvist Cole Aalto Sato Prado Thorne Alder Bianchi Novak Okafor Stein Lund Moreau Haas Patel "
    "Quigley Ramos Sorel Tanaka Ueda Varga Winter Young Zeman Abbott Brandt Castro Dietz Eklund Farrow Grady Holm"
)
_ADJECTIVES = _list(
    "blue quiet open winter second long paper north last stone early broken hidden spare annual final joint local urgent "
    "weekly monthly new old public secret shared silver simple sudden summer tall tidy vital warm wide young"
)
_NOUNS = _list(
    "budget harbour plan survey printer invoice window review garden contract report engine kitchen ladder market notice "
    "office parcel queue rehearsal school tender union visit workshop archive bridge census debate election forecast guide "
    "handover index journey kiosk"
)
_CITIES = _list(
    "Arlen Brimholt Corvale Dunmere Eastwick Fennmoor Glenrock Harrow Ivydale Kestrel Lunden Marrow Norvik Oakham Pellworth "
    "Quarrel Rosby Selmont Tarnow Ulverton Vexley Wexcombe Yarrow Zellin"
)
_PLACES = _list(
    "Juniper Saffron Lantern Beacon Copper Orchard Mill Pavilion Atrium Terrace Arcade Forum Gallery Chapel Boathouse Rotunda "
    "Annex Foundry Loft Cellar"
)
_STREETS = _list(
    "Ash Birch Canal Dock Elm Ferry Garden High Inn Kiln Lark Mill Nut Oak Pine Quay Rose Spring Tower Vine"
)
_COMPANIES = _list(
    "Acorix Beltane Corvid Dynaro Elmira Fornax Galvan Helion Ionara Jovian Kelvex Lumina Mirath Nordal Optara Pylon Quasar "
    "Rigel Solace Tundra"
)
_MODELS = _list("Atlas Breeze Comet Delta Ember Falcon Gecko Heron Ibis Jaguar Koala Lynx")
_WARES = _list(
    "lamp kettle shelf chair vase rug tray mug rack bench clock stool basket mirror bowl pan hose tent stapler torch"
)
_STUFF = _list("oak steel wool glass pine copper cork linen clay brass felt wicker")
_COLOURS = _list("red green blue white black grey yellow brown orange pink teal violet")
_FOLDERS = _list(
    "reports drafts photos work old taxes trips music plans letters school games home bills backup clients"
)
_TOPICS = _list(
    "dentist birthday gym coffee landlord plumber piano allergy passport nanny mechanic choir tutor bakery florist vet "
    "barber locksmith tailor optician"
)
_MATTERS = ("visit", "bill", "lesson", "contact", "key", "gift")
_TEXTS = (
    "it happened again", "it works for me", "please hurry", "the cable was loose", "restart did not help", "seen twice today",
    "waiting for parts", "called back", "needs approval", "not my fault", "solved by update", "ask the vendor",
    "see last week", "cannot repeat it", "customer is angry", "more details follow",
)  # fmt: skip
_ENDINGS = ("txt", "pdf", "csv", "docx")
_FORMS: Mapping[str, tuple[str, str]] = {
    "date": (r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])", "YYYY-MM-DD, such as 2031-05-03"),
    "time": (r"([01]\d|2[0-3]):[0-5]\d", "HH:MM in 24 hours, such as 09:30"),
    "folder": (r"(/[^/]+)+", "an absolute path, such as /reports"),
}
_POOLS: Mapping[str, Sequence[str]] = {
    "city": _CITIES, "company": _COMPANIES, "model": _MODELS, "colour": _COLOURS, "topic": _TOPICS, "first": _FIRST,
    "last": _LAST, "adjective": _ADJECTIVES, "noun": _NOUNS, "placeword": _PLACES, "streetword": _STREETS,
    "ware": _WARES, "stuff": _STUFF, "folderword": _FOLDERS, "texts": _TEXTS,
}  # fmt: skip


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
    return of_split(_POOLS[name], split)


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
            return f"{name}.{rng.choice(_ENDINGS)}"
        case "folder":
            return f"/{_word(rng, split, 'folderword')}"
        case "place":
            return f"{_word(rng, split, 'placeword')} {rng.choice(('Hall', 'House', 'Room'))}"
        case "street":
            return f"{rng.randint(1, 90)} {_word(rng, split, 'streetword')} {rng.choice(('Lane', 'Road', 'Street'))}"
        case "product":
            return f"{_word(rng, split, 'stuff')} {_word(rng, split, 'ware')} {rng.choice('ABCDEFGHKLM')}{rng.randint(1, 9)}"
        case "topic":
            return f"{_word(rng, split, 'topic')} {rng.choice(_MATTERS)}"
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
    """How a value of a kind is to be written, where it is not; "" where it is.

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


VAGUE: Mapping[str, Sequence[str]] = {
    "person": ("somebody else", "another person", "a colleague", "someone"),
    "people": ("some people", "a few others", "my colleagues", "certain people"),
    "date": ("another day", "a better day", "some other day", "a day that suits me"),
    "time": ("another time", "a better time", "some other time", "a time that suits me"),
    "folder": ("another folder", "some other folder", "a better folder", "the right folder"),
    "filename": ("something else", "something different", "something better", "something fitting"),
    "title": ("something else", "something different", "something better", "something fitting"),
    "count": ("another number", "a different number", "some other number", "the right number"),
    "amount": ("a certain number", "some number", "so big a number", "the usual number"),
    "choice": ("something else", "another one", "a different one", "the right one"),
    "street": ("another address", "my other address", "a different address", "the right address"),
    "place": ("another place", "some other place", "a better place", "the right place"),
    "seat": ("another seat", "a better seat", "some other seat", "the right seat"),
}
"""What a user says who leaves a value out, by kind."""
ASKED: Mapping[str, Sequence[str]] = {
    "person": ("person", "who", "whom", "whose", "name"), "people": ("people", "who", "whom", "names", "recipients", "guests"),
    "date": ("date", "day", "when"), "time": ("time", "hour", "when"), "folder": ("folder", "directory", "where", "path"),
    "filename": ("name", "called", "filename"), "title": ("title", "name", "called", "subject"),
    "count": ("number", "many", "much", "value"), "amount": ("amount", "price", "much", "value", "limit"),
    "choice": ("which", "kind", "option", "value"), "street": ("address", "street", "where"),
    "place": ("place", "where", "location"), "seat": ("seat",),
}  # fmt: skip
"""The words by which one asks for a value of a kind, beside the parameter's own name."""
