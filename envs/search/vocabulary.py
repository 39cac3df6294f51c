"""Invented names: every number is another word, and none of them is known from anywhere."""

from __future__ import annotations

import math
from random import Random

_BEGIN, _VOWEL, _MIDDLE, _END = (
    letters.split()
    for letters in (
        "b br d dr f fl g gl gr h j k kl kr l m n p pl pr r s st sv t tr v vr w z",
        "a e i o u",
        (
            "lv rsk mb rth zg nd lk rv sht lm rn vd gn tr zm ld kv rp bl nt lst rg mn dr sk vl rm zd gr lb "
            "v k r l m n t d s g"
        ),
        (
            "n rn s th sk l va m r nd ra lis ven dor mar kis ten rud vis nol gar lin sta bra mund sel tov rik dal "
            "pen zan ril mos var tish gor nel ska ban lor vik ta mir dun resh kal von lan tir sov ga nek rim pol "
            "des hal fen zor mel bro"
        ),
    )
)
WORDS = len(_BEGIN) * len(_VOWEL) * len(_MIDDLE) * len(_VOWEL) * len(_END)
"""How many words there are."""

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

    def __init__(self, rng: Random, people: int) -> None:
        self._step = _coprime(rng, WORDS)
        self._shift = rng.randrange(WORDS)
        self._firsts = max(4, math.isqrt(2 * people) + 1)
        self._people = self._firsts * (people // self._firsts + 1)
        self._person_step = _coprime(rng, self._people)

    def word(self, number: int) -> str:
        """Word ``number``, another one for each number below :data:`WORDS`."""
        at = (number * self._step + self._shift) % WORDS
        at, end = divmod(at, len(_END))
        at, second = divmod(at, len(_VOWEL))
        at, middle = divmod(at, len(_MIDDLE))
        begin, first = divmod(at, len(_VOWEL))
        letters = (_BEGIN[begin], _VOWEL[first], _MIDDLE[middle], _VOWEL[second], _END[end])
        return "".join(letters).capitalize()

    def person(self, number: int) -> str:
        """A first and a last name; many people share one of the two."""
        last, first = divmod(number * self._person_step % self._people, self._firsts)
        return f"{self.word(WORDS - 1 - first)} {self.word(WORDS - 1 - self._firsts - last)}"

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
