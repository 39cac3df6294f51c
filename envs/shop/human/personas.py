"""Shoppers. A persona is a handful of habits; the text that a predictor is given tells all of them."""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple

_NAMES = [
    "Abena", "Björn", "Chiara", "Devi", "Emil", "Fatima", "Gil", "Hana", "Ines", "Jomo", "Kaja", "Luan",
    "Mirjam", "Noor", "Otto", "Pia",
]  # fmt: skip
_WORK = ("nurse", "teacher", "baker", "student", "carpenter", "accountant", "gardener", "retired pilot")


class Persona(NamedTuple):
    """Habits of a shopper."""

    name: str = "A shopper"
    age: int = 40
    work: str = "clerk"
    query: Literal["short", "full"] = (
        "full"  # the first search: only the kind of thing, or all that is wanted
    )
    order: Literal["listed", "cheapest", "title"] = "listed"  # which results are opened first
    compares: int = 1  # products that are looked at before deciding
    reads: tuple[str, ...] = ()  # pages of a product that are read before deciding
    options: Literal["wanted", "none"] = "wanted"  # whether sizes and colours are chosen
    patience: int = 4  # products looked at before leaving without buying

    def describe(self) -> str:
        """The persona in sentences."""
        reads = f"reads the {' and the '.join(self.reads)} of" if self.reads else "reads nothing more about"
        told = {
            "short": "first searches for the kind of thing only, and adds the other words if nothing fits",
            "full": "searches with all the words at once",
            "listed": "opens results in the order of the page",
            "cheapest": "opens the cheapest results first",
            "title": "opens those results first whose titles have the most of the wanted words",
            "wanted": "chooses the wanted options",
            "none": "never chooses options",
        }
        many = (
            "buys the first that fits"
            if self.compares == 1
            else f"looks at {self.compares} that fit, buys the cheapest of them"
        )
        return (
            f"{self.name}, {self.age}, {self.work}: {told[self.query]}; {told[self.order]}; {reads} a product that "
            f"fits by its title; {many}; {told[self.options]}; leaves without buying after {self.patience} products "
            "or when the page has nothing else to open. A title fits that has all of the wanted qualities, or all but "
            "one, at a price that is allowed."
        )


def draw_persona(rng: Random) -> Persona:
    """A persona with habits of its own."""
    pages = ("description", "features", "reviews")
    reads = tuple(page for page in pages if rng.random() < 0.3)
    return Persona(
        rng.choice(_NAMES),
        rng.randint(18, 80),
        rng.choice(_WORK),
        rng.choice(("short", "full")),
        rng.choice(("listed", "cheapest", "title")),
        rng.choice((1, 1, 2, 3)),
        reads,
        rng.choice(("wanted", "wanted", "none")),
        rng.randint(2, 6),
    )
