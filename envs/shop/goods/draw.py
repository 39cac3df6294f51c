"""Drawing the products of a catalogue: lines of a brand, whose members are alike but not the same.

A product is drawn from its kind's schema. Quantities that grow with size go together, prices follow from what a product
is, and what cannot be (a leather jacket for the washing machine) is never drawn.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnwise.envs.shop.conditions import Fact
from turnwise.envs.shop.goods.core import Goods, Quantity
from turnwise.envs.shop.goods.tables import features, impossible, kinds_of_goods, names, opinions
from turnwise.tasks.core import Split

_WARRANTIES = (1.0, 2.0, 3.0, 5.0, 10.0)
_RETURNS = (14.0, 30.0, 60.0, 100.0)
_SPREAD = 0.12  # how far a quantity strays from the product's size, as a share of its ladder
_OPPOSITE = {
    "runs small": "true to size", "battery weak": "battery two days", "broke early": "still good after a year",
    "presses": "comfortable for hours", "colour fades": "colour as shown", "stains": "easy to clean",
    "bad instructions": "easy to put up", "rattles": "quiet in use",
}  # fmt: skip
"""Complaints that do not stand beside this praise."""


_OPPOSITES = _OPPOSITE | {good: bad for bad, good in _OPPOSITE.items()}


class Article(NamedTuple):
    """A product before its texts are written. ``facts`` holds all that a request may demand."""

    goods: Goods
    brand: str
    line: str
    model: str
    facts: dict[str, Fact]
    cents: int
    options: dict[str, tuple[str, ...]]
    surcharges: dict[str, int]  # option value → cents
    sold_out: tuple[str, ...]

    @property
    def name(self) -> str:
        return " ".join(part for part in (self.line, self.model) if part)

    def price(self, chosen: tuple[str, ...] = ()) -> float:
        """In dollars, with these option values."""
        return (self.cents + sum(self.surcharges.get(value, 0) for value in chosen)) / 100


class Listed(NamedTuple):
    """An article and what the shop calls it."""

    article: Article
    title: str


def draw_articles(rng: Random, split: Split, products: int) -> list[Article]:
    """The products of a catalogue: as many of each kind, in an order that tells nothing."""
    articles: list[Article] = []
    sold = kinds_of_goods()
    kinds = rng.sample(sold, len(sold))
    for place, goods in enumerate(kinds):
        articles += _draw_kind(rng, split, goods, len(range(place, products, len(kinds))))
    rng.shuffle(articles)
    return articles


def _draw_kind(rng: Random, split: Split, goods: Goods, products: int) -> list[Article]:
    words, called = names(), names().splits[split]
    pairs = [(brand, line) for brand in called.brands for line in called.lines]
    articles: list[Article] = []
    for brand, line in rng.sample(pairs, min(len(pairs), products)):
        size, material, origin = rng.random(), rng.choice(tuple(goods.materials)), rng.choice(words.origins)
        possible = [name for name in goods.features if name not in impossible().get(material, ())]
        common = {name for name in possible if rng.random() < 0.45}
        for model in rng.sample(tuple(words.models), rng.choice((1, 2, 2, 3))):
            scale = min(1.0, max(0.0, size + words.models[model]))
            has = frozenset(name for name in possible if (name in common) != (rng.random() < 0.2))
            facts: dict[str, Fact] = {
                "brand": brand, "material": material, "origin": origin, "features": has,
                **{quantity.name: _draw_quantity(rng, quantity, scale) for quantity in goods.quantities},
            }  # fmt: skip
            articles.append(_complete(rng, goods, line, model, facts))
            if len(articles) == products:
                return articles
    return articles


def _draw_quantity(rng: Random, quantity: Quantity, scale: float) -> float:
    last = len(quantity.ladder) - 1
    at = rng.gauss(scale, _SPREAD) if quantity.grows else rng.random()
    return quantity.ladder[min(last, max(0, round(at * last)))]


def _complete(rng: Random, goods: Goods, line: str, model: str, facts: dict[str, Fact]) -> Article:
    """Price, opinions, services and variants of a product whose nature is known."""
    quality = rng.random()
    facts["opinions"] = _draw_opinions(rng, goods, quality)
    facts["rating"] = round(min(5.0, max(2.4, 3.1 + 1.7 * quality + rng.gauss(0, 0.15))), 1)
    facts["reviews"] = float(int(10 ** rng.uniform(0.9, 3.6)))
    facts["delivery"] = float(rng.choice((1, 2, 2, 3, 4, 5, 7, 9, 12)))
    facts["warranty"] = rng.choice(_WARRANTIES)
    facts["returns"] = rng.choice(_RETURNS)
    colours = tuple(rng.sample(names().colours, rng.choice((2, 3, 4, 5)))) if goods.coloured else ()
    options = {name: values for name, values in (("color", colours), ("size", goods.sizes)) if values}
    surcharges = {value: 100 * rng.randint(2, 9) for value in colours[1:] if rng.random() < 0.25}
    surcharges |= {value: 100 * rng.randint(2, 6) for value in goods.sizes[3:] if rng.random() < 0.5}
    gone = tuple(value for values in options.values() for value in values[1:] if rng.random() < 0.15)
    offered = {
        name: tuple(value for value in values if value not in gone) for name, values in options.items()
    }
    cents = _price(rng, goods, facts, quality)
    facts["price"] = cents / 100
    brand = str(facts["brand"])
    return Article(goods, brand, line, model, facts, cents, offered, surcharges, gone)


def _draw_opinions(rng: Random, goods: Goods, quality: float) -> frozenset[str]:
    """Draw the opinions of reviews.

    Good products are praised more often, and no two opinions contradict each other.
    """
    heard: set[str] = set()
    for name in goods.opinions:
        chance = 0.2 + 0.45 * (quality if opinions()[name].good else 1 - quality)
        if rng.random() < chance and _OPPOSITES.get(name) not in heard:
            heard.add(name)
    return frozenset(heard)


def _price(rng: Random, goods: Goods, facts: dict[str, Fact], quality: float) -> int:
    dollars = goods.dollars + goods.materials[str(facts["material"])]
    for quantity in goods.quantities:
        dollars += quantity.dollars * quantity.ladder.index(float(facts[quantity.name]))  # pyright: ignore[reportArgumentType]
    dollars += sum(features()[name].dollars for name in sorted(facts["features"]))  # pyright: ignore[reportArgumentType]
    dollars = max(dollars, 0.3 * goods.dollars) * rng.uniform(0.72, 1.1) * (0.85 + 0.35 * quality)
    return int(dollars) * 100 + rng.choice((0, 49, 95, 99, 90))
