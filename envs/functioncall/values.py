"""Values of parameters: drawn, described as JSON schemas, said in words."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from turnwise.envs.worlds.spoken import MONTHS, NUMBERS
from turnwise.tasks.core import Json

_WORDS: Mapping[str, tuple[str, ...]] = {
    "city": ("Arlen", "Brimholt", "Corvale", "Dunmere", "Eastwick", "Fennmoor", "Glenrock", "Harrow", "Ivydale",
             "Kestrel", "Lunden", "Marrow", "Norvik", "Oakham", "Pellworth", "Quarrel"),
    "person": ("Ada Finch", "Ben Osei", "Cleo Marsh", "Dan Ruiz", "Eve Lindqvist", "Femi Cole", "Gus Aalto", "Hana Sato",
               "Ines Prado", "Jack Thorne", "Kim Alder", "Leo Bianchi", "Mia Novak", "Ned Okafor", "Ora Stein", "Pia Lund"),
    "place": ("The Copper Pot", "Juniper", "Old Mill", "Harbour Lights", "Saffron", "The Green Door", "Lantern", "Nine Steps"),
    "street": ("3 Ash Lane", "14 Birch Road", "8 Canal Street", "27 Dock Road", "5 Elm Court", "61 Ferry Lane",
               "12 Garden Row", "40 High Street", "9 Inn Yard", "33 Kiln Road"),
    "room": ("kitchen", "bedroom", "hall", "study", "bathroom", "living room"),
    "currency": ("EUR", "USD", "JPY", "GBP", "CHF", "SEK", "INR", "BRL"),
    "language": ("Finnish", "Korean", "Polish", "Swahili", "Greek", "Danish", "Basque"),
    "product": ("oak shelf", "desk lamp", "wool rug", "tea kettle", "steel vase", "garden chair", "wall clock", "pine bench"),
    "errand": ("water the plants", "call the bank", "pay the rent", "fetch the parcel", "feed the cat", "return the books"),
    "title": ("Blue Harbour", "Second Draft", "North Window", "Paper Boats", "Winter Plan", "Open Questions",
              "Long Division", "Quiet Machine", "Stone Soup", "Last Train"),
}  # fmt: skip
_THINGS = (
    "apples",
    "bread",
    "candles",
    "dates",
    "eggs",
    "flour",
    "grapes",
    "honey",
    "leeks",
    "milk",
    "nuts",
    "rice",
)
_ABOUT = {"date": "as YYYY-MM-DD", "time": "as HH:MM", "currency": "as a code of three letters"}


def draw_value(rng: Random, kind: str) -> Json:
    """A value of a kind. Ids are drawn where the things are that have them."""
    base, _, rest = kind.partition(":")
    match base:
        case "count":
            return rng.randint(2, 12)
        case "stars":
            return rng.randint(1, 5)
        case "amount":
            return rng.choice((rng.randint(10, 900), rng.randint(100, 9000) / 10))
        case "flag":
            return True
        case "date":
            return f"20{rng.randint(31, 39)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        case "time":
            return f"{rng.randint(8, 21):02}:{rng.choice((0, 15, 30, 45)):02}"
        case "choice":
            return rng.choice(rest.split(","))
        case "people":
            return rng.sample(_WORDS["person"], rng.randint(1, 3))
        case "things":
            return rng.sample(_THINGS, rng.randint(2, 4))
        case _:
            return rng.choice(_WORDS[base])


def schema(kind: str, about: str) -> dict[str, Json]:
    """The JSON schema of a kind of value."""
    base, _, rest = kind.partition(":")
    match base:
        case "count":
            made: dict[str, Json] = {"type": "integer", "minimum": 1}
        case "stars":
            made = {"type": "integer", "minimum": 1, "maximum": 5}
        case "amount":
            made = {"type": "number", "exclusiveMinimum": 0}
        case "flag":
            made = {"type": "boolean", "default": False}
        case "choice":
            made = {"type": "string", "enum": rest.split(",")}
        case "people" | "things":
            made = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 1}
        case _:
            made = {"type": "string"}
    told = f"The {about}, {_ABOUT[base]}" if base in _ABOUT else f"The {about}"
    return {**made, "description": f"{told}."}


def said(kind: str, value: Json, *, spoken: bool) -> str:
    """A value in a request; ``spoken``: dates and small numbers in words."""
    if isinstance(value, list):
        return value[0] if len(value) == 1 else f"{', '.join(value[:-1])} and {value[-1]}"
    if spoken and kind == "date":
        year, month, day = str(value).split("-")
        return f"{int(day)} {MONTHS[int(month) - 1]} {year}"
    if spoken and isinstance(value, int) and value < len(NUMBERS):
        return NUMBERS[value]
    return str(value)


def same(first: Json, second: Json) -> bool:
    """Equal in value and in type: 1 is 1.0, but neither is true or "1"; the order in lists is free.

    >>> same(1, 1.0), same(1, True), same(1, "1"), same(["a", "b"], ["b", "a"])
    (True, False, False, True)
    """
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and sorted(map(repr, first)) == sorted(map(repr, second))
    if isinstance(first, str) and isinstance(second, str):
        return " ".join(first.split()) == " ".join(second.split())
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    numbers = isinstance(first, (int, float)) and isinstance(second, (int, float))
    return first == second and (numbers or type(first) is type(second))
