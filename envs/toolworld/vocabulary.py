"""Words that worlds are generated from: people, places, things. Invented combinations, no real data."""

from __future__ import annotations

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
