"""Words that worlds are generated from: people, places, things. Invented combinations, no real data."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

FIRST = [
    "Ada",
    "Amir",
    "Ana",
    "Ben",
    "Bao",
    "Cora",
    "Chen",
    "Dana",
    "Deniz",
    "Ella",
    "Emil",
    "Fay",
    "Femi",
    "Gus",
    "Gita",
    "Hana",
    "Hugo",
    "Ida",
    "Ivan",
    "Jana",
    "Jonas",
    "Kim",
    "Kofi",
    "Lea",
    "Luis",
    "Maya",
    "Mila",
    "Nora",
    "Nils",
    "Olga",
    "Omar",
    "Pia",
    "Pablo",
    "Rosa",
    "Ravi",
    "Sara",
    "Sven",
    "Tara",
    "Theo",
    "Uma",
    "Udo",
    "Vera",
    "Viktor",
    "Wanda",
    "Yara",
    "Yusuf",
    "Zoe",
    "Zane",
]
LAST = [
    "Abel",
    "Alder",
    "Becker",
    "Bloom",
    "Castro",
    "Cole",
    "Dahl",
    "Diaz",
    "Eck",
    "Egan",
    "Falk",
    "Fischer",
    "Gomez",
    "Grant",
    "Haas",
    "Holm",
    "Ito",
    "Ivers",
    "Jansen",
    "Jones",
    "Khan",
    "Koch",
    "Lang",
    "Lopez",
    "Moss",
    "Moreau",
    "Nolan",
    "Novak",
    "Okoye",
    "Olsen",
    "Park",
    "Perez",
    "Quist",
    "Reed",
    "Rossi",
    "Sato",
    "Silva",
    "Tanaka",
    "Thorn",
    "Ueda",
    "Vogel",
    "Voss",
    "Weber",
    "Wood",
    "Yang",
    "Young",
    "Zapata",
    "Zeller",
]
STREETS = [
    "Oak",
    "Elm",
    "Mill",
    "Lake",
    "Hill",
    "Park",
    "Church",
    "Station",
    "Garden",
    "River",
    "Bridge",
    "Market",
]
CITIES = [
    "Arden",
    "Belmore",
    "Corvale",
    "Dunwick",
    "Eastham",
    "Fairhaven",
    "Glenrock",
    "Harrow",
    "Ivydale",
    "Kingsford",
    "Larkhill",
    "Millbrook",
]


class PersonName(NamedTuple):
    first: str
    last: str

    @property
    def full(self) -> str:
        return f"{self.first} {self.last}"

    @property
    def handle(self) -> str:
        return f"{self.first}_{self.last}".lower()


def people(rng: Random, n: int) -> list[PersonName]:
    """Different people; the first two of each ten share a last name, so that names alone mislead."""
    found: dict[str, PersonName] = {}
    while len(found) < n:
        last = next(iter(found.values())).last if len(found) % 10 == 1 else rng.choice(LAST)
        person = PersonName(rng.choice(FIRST), last)
        found.setdefault(person.handle if person.handle not in found else "", person)
        found.pop("", None)
    return list(found.values())


def address(rng: Random) -> str:
    return f"{rng.randint(1, 199)} {rng.choice(STREETS)} Street, {rng.choice(CITIES)} {rng.randint(10000, 99999)}"


def begun(text: str) -> str:
    """A text as a sentence begins, with the rest of it as it was.

    >>> begun("order W15998"), begun("my trip from COR to ARD")
    ('Order W15998', 'My trip from COR to ARD')
    """
    return text[:1].upper() + text[1:]


def single(noun: str) -> str:
    """
    >>> single("teapot"), single("hiking boots")
    ('teapot', 'pair of hiking boots')
    """
    return f"pair of {noun}" if noun.endswith(_IN_PAIRS) else noun


def with_article(noun: str) -> str:
    """One of something.

    >>> [with_article(noun) for noun in ("teapot", "office chair", "red small teapot", "hiking boots")]
    ['a teapot', 'an office chair', 'a red small teapot', 'a pair of hiking boots']
    """
    one = single(noun)
    return f"{'an' if one[0] in 'aeiou' else 'a'} {one}"


_IN_PAIRS = ("boots", "shoes", "gloves", "trousers")


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "more bag"), counted(3, "more bag")
    ('1 more bag', '3 more bags')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def listed(things: Sequence[str], *, before: str = "the ") -> str:
    """
    >>> listed(["lamp"]), listed(["lamp", "mat", "chair"])
    ('the lamp', 'the lamp, the mat and the chair')
    """
    *first, last = (f"{before}{thing}" for thing in things)
    return f"{', '.join(first)} and {last}" if first else last
