"""Invented names that read as names: towns, first names and surnames, put together from pieces.

Every number is another name. The pairs of pieces are dealt to the splits, surnames too, so that no name of a test world
was met in training.
"""

from __future__ import annotations

import math
from random import Random
from typing import Literal

Part = Literal["train", "dev", "test"]
"""Whose names a world takes."""

_STEM_TEXT = (
    "Ash Alder Barn Bell Birch Black Bram Brook Burn Calder Carl Castle Cliff Clover Cold Corn Crane "
    "Cross Dal Deer Dove Drum Dun Eagle East Eden Elder Elm Ever Fair Falk Fern Field Finch Flint Fox "
    "Frost Gar Glen Gold Gorse Grange Green Grim Hail Hare Hart Haven Hawk Hazel Heath Heron Hill Holl "
    "Holm Hope Horn Iron Ivy Jul Kel Kings Kirk Lam Lark Laurel Leaf Lind Lock Lund Mal Maple Marl Marsh "
    "May Mel Mill Moor Moss Nether New Nord Nor Oak Orch Otter Over Park Penn Pine Plum Queens Quarr "
    "Raven Red Reed Ridge Rook Rose Rowan Rush Salt Sand Sel Shel Silver Snow Stan Stark Still Stone "
    "Storm Sud Summer Swan Tam Thorn Tide Timber Trent Upp Val Wal Ward Water Wel West Wheat White Wil "
    "Wind Winter Wolf Wood Wren Yar Yew"
)
_END_TEXT = (
    "ford mere wick holm bury by combe dale den don field gate ham hurst ley low mouth ness over port "
    "quay ridge sea side stead stoke stow thorpe ton vale well wich wood worth yard bridge brook burn "
    "church cliff cross fell garth hall haven head heath hill hope keld kirk land lea marsh mill minster "
    "moor mount pool shaw shore strand toft tor view water way wold march bank croft"
)
_STEMS, _ENDS = _STEM_TEXT.split(), _END_TEXT.split()
_MIDDLES = ("", "er", "en", "ing", "el", "ar", "ern", "ow", "is", "in", "et", "or")
_BEFORE = (
    "", "Port ", "New ", "Upper ", "Lower ", "Saint ", "Old ", "Great ", "Little ", "North ", "South ", "East ", "West ",
    "High ", "Long ", "Nether ", "Mount ", "Market ", "Abbots ", "Kings ",
)  # fmt: skip
_LEVELS = len(_MIDDLES) * len(_BEFORE)
_HEAD_TEXT = (
    "Al Bern Con Ed Er Ferd Ger Har Her Hel Il Jor Kar Leon Mar Nor Ol Ot Rob Rud Sig Theo Ul Wil Wal Ann "
    "Cath Dor El Flor"
)
_TAIL_TEXT = (
    "bert ard win mund rich fred a ina ette old mar us is an ald ric helm lind gard trud inda ora ella "
    "ika ias or ine e o ian"
)
_FIRSTS = tuple(head + tail for head in _HEAD_TEXT.split() for tail in _TAIL_TEXT.split())
_FAMILY_TEXT = (
    "Abbot Adler Amber Archer Baker Barlow Becker Berg Black Brand Brook Carter Chandler Cole Cooper "
    "Crane Dahl Draper Drew Eck Ellis Falk Fisher Fletcher Fuller Gard Grant Gray Green Hardy Harper Hart "
    "Hayes Heller Hoff Holt Hunter Jensen Keller Kemp Kirch Lamb Lang Lind Lock Mason Mercer Meyer Miller "
    "Nash Noble Norden Page Palmer Porter Quill Read Reeve Richter Ritter Roth Sander Sawyer Shaw Sommer "
    "Steiner Stern Stone Tanner Thorn Turner Vogel Wagner Walker Weaver Weber West Winter Wolff Young "
    "Zeller"
)
_FAMILY_ENDS = (
    "", "son", "s", "well", "man", "by", "ley", "ton", "ham", "feld", "berg", "stein", "dahl", "gren", "quist", "worth",
    "wood", "field", "brook", "ridge",
)  # fmt: skip
_LASTS = tuple(family + end for family in _FAMILY_TEXT.split() for end in _FAMILY_ENDS)
_PARTS: dict[str, range] = {"train": range(8), "dev": range(8, 9), "test": range(9, 10)}


def _dealt(count: int, part: Part) -> list[int]:
    """The numbers below ``count`` that belong to a part: eight tenths, one tenth, one tenth."""
    return [number for number in range(count) if number * 7919 % 9973 % 10 in _PARTS[part]]


PROFESSIONS = (
    "painter", "chemist", "engraver", "astronomer", "lawyer", "botanist", "architect", "composer", "surgeon",
    "cartographer", "poet", "glassmaker", "historian", "navigator", "sculptor", "printer",
)  # fmt: skip
_ADJECTIVES = (
    "Silent", "Amber", "Hollow", "Distant", "Broken", "Gilded", "Northern", "Restless", "Patient", "Salted",
    "Crooked", "Pale", "Burning", "Drowned", "Second", "Narrow", "Velvet", "Frozen", "Wandering", "Last",
)  # fmt: skip
_NOUNS = (
    "Heron", "Orchard", "Lantern", "Harbour", "Winter", "Ledger", "Garden", "Bridge", "Mirror", "Tide",
    "Cellar", "Choir", "Ferry", "Meadow", "Tower", "Compass", "Quarry", "Letter", "Viaduct", "Almanac",
)  # fmt: skip
_SUFFIXES = {
    "company": ("Works", "Lines", "Mills", "Foundry", "Press", "Trading House"),
    "school": ("Academy", "Institute", "College", "Conservatory"),
    "event": ("Regatta", "Games", "Fair", "Rally", "Song Contest"),
}


class WorldNames:
    """The names of a world. Two worlds of different seeds name the same number differently."""

    def __init__(self, rng: Random, people: int, part: Part = "train") -> None:
        self._pairs = _dealt(len(_STEMS) * len(_ENDS), part)
        self._given, self._family = list(_FIRSTS), [_LASTS[n] for n in _dealt(len(_LASTS), part)]
        for names in (self._pairs, self._given, self._family):
            rng.shuffle(names)
        self._firsts = min(len(_FIRSTS), max(4, math.isqrt(2 * people) + 1))
        self._people = self._firsts * (people // self._firsts + 1)
        self._step = _coprime(rng, self._people)

    def word(self, number: int) -> str:
        """The name of a place, another one for each number; the first few thousand are the plainest.

        Larger worlds have longer ones: Ashford, then Ashingford, then Port Ashford, then Ashford-on-Alder.
        """
        level, at = divmod(number, len(self._pairs))
        stem, end = divmod(self._pairs[at], len(_ENDS))
        far, level = divmod(level, _LEVELS)
        before, middle = divmod(level, len(_MIDDLES))
        name = f"{_BEFORE[before]}{_STEMS[stem]}{_MIDDLES[middle]}{_ENDS[end]}"
        return f"{name}-on-{_STEMS[(far - 1) % len(_STEMS)]}" if far else name

    def person(self, number: int) -> str:
        """A first and a last name; many people share one of the two."""
        last, first = divmod(number * self._step % self._people, self._firsts)
        double, last = divmod(last, len(self._family))
        family = f"{self._family[double - 1]}-{self._family[last]}" if double else self._family[last]
        return f"{self._given[first]} {family}"

    def thing(self, kind: str, number: int, dice: int) -> str:
        """The name of what is no person."""
        word = self.word(number)
        if kind in ("book", "film"):
            adjective = _ADJECTIVES[dice % len(_ADJECTIVES)]
            return f"The {adjective} {_NOUNS[dice // 32 % len(_NOUNS)]} of {word}"
        suffixes = _SUFFIXES.get(kind)
        return f"{word} {suffixes[dice % len(suffixes)]}" if suffixes else word


def _coprime(rng: Random, modulus: int) -> int:
    while math.gcd(step := rng.randrange(1, max(2, modulus)), modulus) != 1:
        pass
    return step
