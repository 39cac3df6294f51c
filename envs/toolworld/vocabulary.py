"""Words that worlds are generated from, and how things are named and counted in sentences."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from turnwise.data_file import data_file


class WorldWords(NamedTuple):
    """Names of people and places (vocabulary.yaml)."""

    first: tuple[str, ...]
    last: tuple[str, ...]
    streets: tuple[str, ...]
    cities: tuple[str, ...]


@functools.cache
def world_words() -> WorldWords:
    """Return the names that worlds are generated from."""
    return data_file("turnwise.envs.toolworld", "vocabulary", WorldWords)


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
    words, found = world_words(), dict[str, PersonName]()
    while len(found) < n:
        last = next(iter(found.values())).last if len(found) % 10 == 1 else rng.choice(words.last)
        person = PersonName(rng.choice(words.first), last)
        found.setdefault(person.handle if person.handle not in found else "", person)
        found.pop("", None)
    return list(found.values())


def address(rng: Random) -> str:
    words = world_words()
    street, city = f"{rng.randint(1, 199)} {rng.choice(words.streets)} Street", rng.choice(words.cities)
    return f"{street}, {city} {rng.randint(10000, 99999)}"


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
