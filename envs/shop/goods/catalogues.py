"""Catalogues of goods: a seed and a split → products whose texts are written when a page shows them."""

from __future__ import annotations

import functools
import string
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from turnwise.envs.shop.catalogue import Catalogue, Product
from turnwise.envs.shop.conditions import Facts
from turnwise.envs.shop.goods.draw import Article, Listed, draw_articles
from turnwise.envs.shop.goods.texts import bullets, description, reviews, specification, title
from turnwise.envs.shop.index import SearchIndex
from turnwise.tasks.core import Json, Split, derive_rng

_DIGITS = string.digits + string.ascii_uppercase
_ASIN_SPACE = 36**8
_ASIN_STEP = 1_640_531_527_043  # coprime to 36**8, so that no two products share an asin


@dataclass(frozen=True)
class GoodsSpec:
    """Inputs of a catalogue. Equal specs make equal catalogues, on every machine."""

    seed: str
    split: str
    products: int

    def to_json(self) -> dict[str, Json]:
        return {"goods": True, **asdict(self)}

    @staticmethod
    def from_json(data: Mapping[str, Json]) -> GoodsSpec:
        return GoodsSpec(data["seed"], data["split"], data["products"])

    def build(self) -> Catalogue:
        rng = derive_rng("goods", self.seed)
        shelf = Shelf(draw_articles(rng, Split(self.split), self.products), rng.getrandbits(40))
        index = SearchIndex.of_texts(shelf.indexed(place) for place in range(len(shelf.articles)))
        return Catalogue(self, len(shelf.articles), shelf.product, shelf.position, index, shelf, shelf.facts)


class Shelf:
    """The articles of a catalogue, and the products that they become."""

    def __init__(self, articles: list[Article], start: int) -> None:
        self.articles = articles
        self.titles = [title(article) for article in articles]
        self._start = start
        self._asins = {self._asin(place): place for place in range(len(articles))}

    def position(self, asin: str) -> int | None:
        return self._asins.get(asin.upper())

    def alike(self, place: int) -> list[tuple[int, Listed]]:
        """All articles of the same kind as the one at a place, and where they stand."""
        goods = self.articles[place].goods
        found = enumerate(zip(self.articles, self.titles, strict=True))
        return [(at, Listed(*each)) for at, each in found if each[0].goods is goods]

    def facts(self, place: int) -> Facts:
        return self.articles[place].facts

    def indexed(self, place: int) -> str:
        """Return the text of a product in the search, as in WebShop: title, first feature, options; and its
        shelf.
        """
        article = self.articles[place]
        options = " ".join(value for values in article.options.values() for value in values)
        return (
            f"{self.titles[place]} {article.goods.noun} {article.goods.shelf} {bullets(article)[0]} {options}"
        )

    def product(self, place: int) -> Product:
        article = self.articles[place]
        facts = article.facts
        return _Shown(
            article,
            self._start + place,
            asin=self._asin(place),
            title=self.titles[place],
            category=f"{article.goods.shelf} › {article.goods.noun}",
            query=article.goods.noun,
            price=article.price(),
            options=article.options,
            rating=f"{facts['rating']} of 5 ({int(facts['reviews'])} ratings)",  # pyright: ignore[reportArgumentType]
            noun=article.goods.noun,
            surcharges=article.surcharges,
            facts=facts,
        )

    def _asin(self, place: int) -> str:
        number, digits = (self._start + place * _ASIN_STEP) % _ASIN_SPACE, ""
        for _ in range(8):
            number, digit = divmod(number, 36)
            digits = _DIGITS[digit] + digits
        return f"B0{digits}"


class _Shown(Product):
    """A product whose texts are written when they are first read: lists of results need none of them."""

    def __init__(self, article: Article, seed: int, **fields: Any) -> None:
        super().__init__(**fields)
        self.__dict__.update(_article=article, _seed=seed)
        for written in ("description", "bullets", "reviews", "specification"):
            del self.__dict__[written]  # the properties below take the place of the empty fields

    @functools.cached_property
    def description(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return description(self.__dict__["_article"], Random(self.__dict__["_seed"]))

    @functools.cached_property
    def bullets(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return bullets(self.__dict__["_article"])

    @functools.cached_property
    def reviews(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return reviews(self.__dict__["_article"], Random(self.__dict__["_seed"] + 1))

    @functools.cached_property
    def specification(self) -> tuple[tuple[str, str], ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return specification(self.__dict__["_article"])
