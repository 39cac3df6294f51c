"""Substances and what becomes of them when they are mixed. Degrees are Celsius, rounded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

NEVER = 9999
SOLID, LIQUID, GAS = 0, 1, 2
PHASES = ("solid", "liquid", "gas")
ROOM_TEMPERATURE = 20


class Substance(NamedTuple):
    """Temperatures at which a substance melts and boils, and from which on it burns to ash."""

    melts: int
    boils: int = NEVER
    burns: int = NEVER


def _powders(names: str) -> dict[str, Substance]:
    return {name: Substance(800) for name in names.split()}


def _fluids(names: str) -> dict[str, Substance]:
    return {name: Substance(-5, 102) for name in names.split()}


SUBSTANCES: Mapping[str, Substance] = {
    "water": Substance(0, 100),
    "alcohol": Substance(-114, 78),
    "acetone": Substance(-95, 56),
    "ether": Substance(-116, 35),
    "mercury": Substance(-39, 357),
    "milk": Substance(-1, 101),
    "juice": Substance(-2, 102),
    "vinegar": Substance(-2, 101),
    "oil": Substance(-6, NEVER, 300),
    "chocolate": Substance(34, NEVER, 180),
    "butter": Substance(33, NEVER, 200),
    "wax": Substance(60, NEVER, 370),
    "gallium": Substance(30, 2400),
    "sulfur": Substance(115, 445),
    "iodine": Substance(114, 184),
    "tin": Substance(232, 2602),
    "bismuth": Substance(271, 1564),
    "lead": Substance(327, 1749),
    "zinc": Substance(420, 907),
    "aluminium": Substance(660, 2470),
    "silver": Substance(962, 2162),
    "copper": Substance(1085, 2562),
    "compound": Substance(800),  # where it melts is the task's secret
    **_powders("salt sugar flour soda limestone sand starch soot iron lye soil"),
    **_fluids("lemon gum ammonia peroxide"),
    **_fluids("brine syrup dough acetate mortar paste ink rust soap lemonade cleaner foam"),
    **_fluids("red yellow blue orange green violet"),
    **_fluids("amber vermilion chartreuse teal magenta indigo"),
    "ash": Substance(800),
    "sludge": Substance(-5),
    **_fluids("seawater nectar bittern broth whey leachate"),
    **_powders("magnesia gelatine lactose potash"),
}
NUMBER: Mapping[str, int] = {name: number for number, name in enumerate(SUBSTANCES)}
NAMES: tuple[str, ...] = tuple(SUBSTANCES)

BOILING = (
    "water",
    "alcohol",
    "acetone",
    "ether",
    "mercury",
    "milk",
    "juice",
    "vinegar",
    "sulfur",
    "iodine",
    "zinc",
)
MELTING = (
    "chocolate",
    "butter",
    "wax",
    "gallium",
    "sulfur",
    "iodine",
    "tin",
    "bismuth",
    "lead",
    "zinc",
    "aluminium",
    "silver",
    "copper",
)
FLUIDS = (
    "water",
    "milk",
    "juice",
    "vinegar",
    "oil",
    "brine",
    "syrup",
)  # between freezing and boiling from 3 to 95 degrees

RESIDUES: Mapping[str, str] = {
    "brine": "salt",
    "seawater": "salt",
    "syrup": "sugar",
    "nectar": "sugar",
    "bittern": "magnesia",
    "broth": "gelatine",
    "whey": "lactose",
    "leachate": "potash",
}  # what is left of a solution that has boiled away

CHEMISTRY: Mapping[str, tuple[str, ...]] = {
    "brine": ("salt", "water"),
    "syrup": ("sugar", "water"),
    "dough": ("flour", "water"),
    "paste": ("starch", "water"),
    "acetate": ("soda", "vinegar"),
    "mortar": ("limestone", "sand", "water"),
    "ink": ("gum", "soot"),
    "rust": ("iron", "peroxide"),
    "soap": ("lye", "oil"),
    "lemonade": ("lemon", "sugar", "water"),
    "cleaner": ("ammonia", "water"),
    "foam": ("peroxide", "soda"),
}
PAINT: Mapping[str, tuple[str, ...]] = {
    "orange": ("red", "yellow"),
    "green": ("blue", "yellow"),
    "violet": ("blue", "red"),
    "amber": ("orange", "yellow"),
    "vermilion": ("orange", "red"),
    "chartreuse": ("green", "yellow"),
    "teal": ("blue", "green"),
    "magenta": ("red", "violet"),
    "indigo": ("blue", "violet"),
}


def mask(*names: str) -> int:
    """Substances as a set of bits.

    >>> mask("water") | mask("alcohol") == mask("water", "alcohol") == 3
    True
    """
    return sum({1 << NUMBER[name] for name in names})


def names(content: int) -> list[str]:
    """The substances of a set of bits."""
    found: list[str] = []
    while content:
        bit = content & -content
        found.append(NAMES[bit.bit_length() - 1])
        content ^= bit
    return found


RECIPES: Mapping[int, int] = {
    mask(*parts): mask(name) for name, parts in (*CHEMISTRY.items(), *PAINT.items())
}
"""Product of each mixture."""
PARTS: Mapping[int, int] = {product: parts for parts, product in RECIPES.items()}
LEFT: Mapping[int, int] = {mask(solution): mask(rest) for solution, rest in RESIDUES.items()}
"""Residue of each solution."""
WATER, SOIL, ASH, SLUDGE = mask("water"), mask("soil"), mask("ash"), mask("sludge")


def leads_somewhere(content: int) -> bool:
    """Say whether these substances are part of some recipe, or one alone."""
    return content & (content - 1) == 0 or any(content & parts == content for parts in RECIPES)
