"""What a kind of goods is: the schema that its products are drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from turnwise.envs.shop.conditions import Condition
from turnwise.envs.wordings import Wordings


class Dimension(NamedTuple):
    """How people speak of a quantity. ``{}`` stands for a value with its unit; clauses follow "one that".

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
        """What it is called in a sentence."""
        return self.said or (f"number of {self.unit}" if self.dimension == "count" else self.name)


class Feature(NamedTuple):
    """Something that a product has or lacks."""

    label: str  # in the table and in titles
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


ANIMAL = ("leather", "suede", "wool", "silk", "down")
"""Materials that are made of animals."""

IMPOSSIBLE: Mapping[str, frozenset[str]] = {
    "leather": frozenset({"machine washable", "waterproof", "dishwasher safe"}),
    "suede": frozenset({"machine washable", "waterproof"}),
    "silk": frozenset({"machine washable", "waterproof", "tumble dry"}),
    "wool": frozenset({"waterproof", "tumble dry"}),
    "down": frozenset({"hypoallergenic"}),
    "cast iron": frozenset({"dishwasher safe", "foldable"}),
    "carbon steel": frozenset({"dishwasher safe"}),
    "wood": frozenset({"dishwasher safe", "frost proof"}),
    "bamboo": frozenset({"dishwasher safe", "frost proof"}),
    "terracotta": frozenset({"frost proof"}),
    "glass": frozenset({"unbreakable"}),
    "porcelain": frozenset({"unbreakable"}),
    "stoneware": frozenset({"unbreakable"}),
    "steel": frozenset({"microwave safe"}),
    "stainless steel": frozenset({"microwave safe"}),
    "aluminium": frozenset({"expandable"}),
    "polycarbonate": frozenset({"expandable"}),
    "enamel": frozenset({"microwave safe"}),
}
"""Material → features that no product of it has."""
