"""Kinds of goods: the schema that their products are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.shop.conditions import Condition
from turnwise.envs.wordings import Wordings
from turnwise.tasks.core import Split


class Dimension(NamedTuple):
    """Words that people use about a quantity.

    ``{}`` stands for a value with its unit; clauses follow "one that".

    ``named`` is set where ``less`` and ``more`` must say of what: a larger mug has no more pieces.
    """

    less: str
    least: str
    more: str
    most: str
    at_most: Wordings
    at_least: Wordings
    named: bool = False


class Quantity(NamedTuple):
    """A measured fact: drawn from ``ladder`` (in ``unit``), ``dollars`` dearer with each step of it."""

    name: str
    dimension: str
    unit: str
    ladder: tuple[float, ...]
    dollars: float = 0.0
    grows: bool = True  # with the product's size; else it is drawn by itself
    said: str = ""  # its noun in sentences, where its name is none

    @property
    def spoken(self) -> str:
        """Name of the quantity in a sentence."""
        return self.said or (f"number of {self.unit}" if self.dimension == "count" else self.name)


class Feature(NamedTuple):
    """Something that a product has or lacks."""

    bullet: str
    wants: Wordings
    shuns: Wordings | None = None  # where somebody may not want it
    dollars: float = 5.0


class Opinion(NamedTuple):
    """Something that only reviews tell. ``wants`` asks for it, or for its absence where it is a complaint."""

    good: bool
    said: tuple[str, ...]
    wants: Wordings


class Need(NamedTuple):
    """A use that demands something; clauses follow "one that"."""

    said: Wordings
    conditions: tuple[Condition, ...]


class Goods(NamedTuple):
    """A kind of goods. ``noun`` is one word that stands in every title and in no other kind's."""

    noun: str
    shelf: str  # "department › aisle"
    dollars: float
    materials: Mapping[str, float]  # material → dollars more
    quantities: tuple[Quantity, ...]
    features: tuple[str, ...]
    opinions: tuple[str, ...]
    needs: tuple[Need, ...]
    prose: str  # a sentence of the description
    sizes: tuple[str, ...] = ()  # in lower case, as clicks are read
    coloured: bool = True


class SplitNames(NamedTuple):
    """Names in the catalogues of one split: no brand or line stands in two."""

    brands: tuple[str, ...]
    lines: tuple[str, ...]


class GoodsNames(NamedTuple):
    """Names of goods, and the origins and colours that they come in."""

    splits: Mapping[Split, SplitNames]
    models: Mapping[str, float]  # what a member of a line is called → how much bigger it is, of 0 to 1
    origins: tuple[str, ...]
    colours: tuple[str, ...]  # no two of them are alike to the score


class ReviewWords(NamedTuple):
    """People who write reviews, sentences that say nothing, and endings of praise and complaints."""

    people: tuple[str, ...]
    idle: tuple[str, ...]
    glad: tuple[str, ...]
    sorry: tuple[str, ...]


ANIMAL = ("leather", "suede", "wool", "silk", "down")
"""Materials that are made of animals."""
