"""Words that depend on others: units behind numbers, letters for numbers that stand elsewhere, one thing or several."""

from __future__ import annotations

import re
from collections.abc import Mapping

_AGREES = re.compile(r"(\w+)/(\w+)")
_UNIT = re.compile(r"\{(\w+):\w+\}")
_LETTERS = "NMKPQRTUVW"
_ALL = "all "


class ToldValue(str):
    """A value in words; a template says with ``{minutes:minutes}`` that a unit follows.

    >>> ["for {n:bags}".format(n=ToldValue(n)) for n in ("1", "2", "three")]
    ['for 1 bag', 'for 2 bags', 'for three bags']
    """

    __slots__ = ()

    def __format__(self, unit: str) -> str:
        if not unit:
            return str(self)
        return f"{self} {unit.removesuffix('s') if self == '1' else unit}"


class StatedValue(ToldValue):
    """A value that stands somewhere, in words for where: before a unit a letter has to stand for them."""

    __slots__ = ()


def lettered(way: str, words: Mapping[str, str], used: int) -> dict[str, str]:
    """Map the names of a template's values to letters, those that have been used left out."""
    names = [name for name in _UNIT.findall(way) if isinstance(words[name], StatedValue)]
    return dict(zip(names, _LETTERS[used:], strict=False))


def units_of(way: str, name: str) -> list[str]:
    """The units that a template has behind a value; "of" is none."""
    return [unit for unit in re.findall(rf"\{{{name}:(\w+)\}}", way) if unit != "of"]


def agreeing(way: str, it: str = "", *, several: bool = False) -> str:
    """A template whose "is/are" and "it/them" agree with the thing or the things that it is about.

    >>> [agreeing("see that {it} is/are shut by closing it/them", it, several=several)
    ...  for it, several in (("the door", False), ("all doors", True), ("each of the doors", True))]
    ['see that {it} is shut by closing it', 'see that {it} are shut by closing them', 'see that {it} is shut by closing them']
    """
    many = several and (not it or it.startswith(_ALL))

    def chosen(found: re.Match[str]) -> str:
        return found[2] if (several if found[1] == "it" else many) else found[1]

    return _AGREES.sub(chosen, way)
