"""Tasks of the shop: knobs → a catalogue and a goal, and a task → the world it describes."""

from __future__ import annotations

import functools
from random import Random
from typing import Any, Literal

import pydantic

from turnwise.envs.shop.catalogue import Catalogue, Product, catalogue
from turnwise.envs.shop.engine import Layout, World, choose
from turnwise.envs.shop.procedural import ProceduralSpec, columns_of
from turnwise.envs.shop.reward import NO_CAP, Goal, type_words
from turnwise.envs.shop.words import Size, vocabulary
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Task, digest

ENV = "turnwise/Shop-v0"
_BUCKETS = {Split.TRAIN: range(8), Split.DEV: range(8, 9), Split.TEST: range(9, 10)}
_ATTEMPTS = 400


class ShopKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """What makes the shop easy or hard. Every task carries what follows from them, and needs nothing else."""

    pages: Literal["compact", "full"] = "full"
    labels: Literal["asin", "position"] = "asin"
    per_page: int = pydantic.Field(10, ge=1, le=50)
    turn_limit: int = pydantic.Field(15, ge=3)
    show_attributes: bool = False
    vocabulary: Size = "full"
    catalogues: int = pydantic.Field(8, ge=1)  # different ones per split
    products: int = pydantic.Field(1000, ge=4)  # of each catalogue
    attributes: tuple[int, int] = (1, 2)  # of a goal, at least and at most
    product_attributes: int = 0  # of each product; 0: as many as a goal has at most
    titled: int = 0  # of those, how many the title tells; 0: all
    option_groups: int = pydantic.Field(1, ge=0, le=4)
    values: int = pydantic.Field(3, ge=2)  # of each option group
    distractors: int = pydantic.Field(3, ge=0)
    stray: float = pydantic.Field(0.0, ge=0, le=1)
    price_cap: bool = False
    prices: Literal["coarse", "fine"] = "coarse"

    @pydantic.field_validator("attributes", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (value, value) if isinstance(value, int) else value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> ShopKnobs:
        words = vocabulary(self.vocabulary)
        low, high = self.attributes
        total = self.product_attributes or high
        if not 1 <= low <= high <= total < len(words.attributes):
            raise ValueError(f"1 ≤ attributes ≤ product_attributes < {len(words.attributes)} must hold")
        if self.titled > total:
            raise ValueError(f"titled must be at most the product's {total} attributes")
        most = min(len(values) for _, values in words.options) - 1
        if self.values > most:
            raise ValueError(f"values must be at most {most} with the {self.vocabulary} vocabulary")
        return self

    def spec(self, split: Split, number: int) -> ProceduralSpec:
        """Catalogue ``number`` of a split."""
        low, high = self.attributes
        total = self.product_attributes or high
        return ProceduralSpec(
            seed=digest(ENV, split.value, number),
            products=self.products,
            vocabulary=self.vocabulary,
            attributes=total,
            required=low,
            titled=self.titled or total,
            option_groups=self.option_groups,
            values=self.values,
            distractors=self.distractors,
            stray=self.stray,
            price_cap=self.price_cap,
            prices=self.prices,
        )


def knobs_of(values: dict[str, Json]) -> ShopKnobs:
    """Check knobs.

    Raises:
        EnvError: one is unknown or has a value that is not allowed.
    """
    for name in values:
        if name not in ShopKnobs.model_fields:
            error = NotFoundError("knob of the shop called", name, ShopKnobs.model_fields)
            raise EnvError(error.cause, error.remedy)
    try:
        return ShopKnobs.model_validate(values)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "knobs"
        raise EnvError(f"Shop: {where}: {first['msg']}.", "See ShopKnobs in envs/shop/goals.py.") from None


def draw_task(rng: Random, split: Split, knobs: ShopKnobs) -> Task:
    """A task whose catalogue and goal occur in no other split, and whose product a search can find."""
    for _ in range(_ATTEMPTS):
        spec = knobs.spec(split, rng.randrange(knobs.catalogues))
        shop = catalogue(spec)
        columns = columns_of(shop)
        family = rng.randrange(len(columns.base_F))
        product = shop.product(int(columns.base_F[family]))
        count = rng.randint(*knobs.attributes)
        order = vocabulary(knobs.vocabulary).attributes
        attributes = tuple(sorted(product.attributes[:count], key=order.index))
        options = {
            name: values[columns.wanted_FG[family, g]]
            for g, (name, values) in enumerate(columns.words.options[: spec.option_groups])
        }
        noun = product.query
        key = digest(noun, sorted(attributes), sorted(options.items()))
        if int(key, 16) % 10 not in _BUCKETS[split]:
            continue
        cap = draw_cap(rng, product.price) if knobs.price_cap else NO_CAP
        query = find_query(shop, product, (*attributes, noun), options)
        if query is None:
            continue
        prompt = _instruction(knobs, noun, attributes, options, cap)
        goal = {"asin": product.asin, "attributes": attributes, "options": list(options.values()), "price_cap": cap}
        layout = {name: getattr(knobs, name) for name in ("pages", "labels", "per_page", "show_attributes")}
        settings = {"catalogue": spec.to_json(), "goal": goal, "turn_limit": knobs.turn_limit, **layout}
        settings["goal"]["attributes"] = list(attributes)
        return Task(ENV, prompt, settings, {"asin": product.asin, "options": options, "query": query})
    raise EnvError(
        f"No goal of the {split} split was found in {_ATTEMPTS} attempts.",
        "Use more catalogues, more products or a larger vocabulary.",
    )


def draw_cap(rng: Random, price: float) -> float:
    """WebShop's cap: the larger of two of the first four multiples of ten above the price; none above 980."""
    above = [10.0 * i for i in range(1, 100) if 10.0 * i > price][:4]
    return max(rng.sample(above, 2)) if len(above) >= 2 else NO_CAP


def find_query(shop: Catalogue, product: Product, asked: tuple[str, ...], options: dict[str, str]) -> str | None:
    """A query that finds the product: what is asked for, else more of what its page says."""
    position = shop.position(product.asin)
    words = " ".join(asked)
    wanted = " ".join(options.values())
    for query in (words, f"{words} {wanted}", product.title, f"{product.title} {wanted}"):
        if position in shop.search(query):
            return query.strip()
    return None


def _instruction(
    knobs: ShopKnobs, noun: str, attributes: tuple[str, ...], options: dict[str, str], cap: float
) -> str:
    thing = " ".join((*attributes, noun))
    if knobs.pages == "compact":
        parts = [thing, *options.values(), *([f"under ${cap:.0f}"] if cap < NO_CAP else [])]
        return "buy " + ", ".join(parts)
    chosen = " and ".join(f"{name}: {value}" for name, value in options.items())
    price = f", and price lower than {cap:.2f} dollars" if cap < NO_CAP else ""
    return f"i need a {thing}{f' with {chosen}' if chosen else ''}{price}"


def world_of(task: Task) -> World:
    """The world that a task describes.

    Raises:
        EnvError: the task is not one of the shop's.
    """
    try:
        shop = catalogue(_spec(task.options["catalogue"]))
        wanted = task.options["goal"]
        position = shop.position(wanted["asin"])
        assert position is not None
        layout = Layout(*(task.options[name] for name in ("pages", "labels", "per_page", "show_attributes")))
    except (KeyError, TypeError, AssertionError) as error:
        raise EnvError(f"This is no task of {ENV}: {error!r}.", "Take tasks from a shop suite.") from None
    product = shop.product(position)
    goal = Goal(
        asin=product.asin,
        title=product.title,
        category=product.category,
        query=product.query,
        nouns=type_words(product),
        attributes=tuple(wanted["attributes"]),
        options=tuple(wanted["options"]),
        price_cap=wanted["price_cap"],
    )
    return World(task, shop, goal, layout, (task.gold or {}).get("query", product.title))


def _spec(data: dict[str, Json]) -> Any:
    return ProceduralSpec(**data)
