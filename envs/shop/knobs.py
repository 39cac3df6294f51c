"""The knobs of the shop: what a suite may set, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pydantic

from turnwise.envs.shop.goods.catalogues import GoodsSpec
from turnwise.envs.shop.procedural import Difference, ProceduralSpec
from turnwise.envs.shop.state import ShopLayout
from turnwise.envs.shop.vocabulary import Size, vocabulary
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.tasks.core import Json, Split, digest

ENV = "turnwise/Shop-v0"
_KINDS_AT_ONCE = 6


class PageKnobs(pydantic.BaseModel, extra="forbid", frozen=True):
    """Knobs of the pages' appearance and of the turn limit."""

    pages: Literal["compact", "full"] = "full"
    labels: Literal["asin", "position", "title"] = "asin"  # what one clicks in the results
    per_page: int = pydantic.Field(10, ge=1, le=50)
    show_prices: bool = True  # on compact pages
    show_attributes: bool = False  # WebShop's fourth sub-page, which tells everything
    price_cap: bool = False  # whether goals name a price, and near-duplicates are dearer
    turn_limit: int = pydantic.Field(15, ge=3)

    @property
    def layout(self) -> ShopLayout:
        return ShopLayout(**{name: getattr(self, name) for name in ShopLayout._fields})


class ShopKnobs(PageKnobs, extra="forbid", frozen=True):
    """Procedural catalogues and goals. Every task carries what follows from these, and needs nothing else."""

    language: Literal["small"] = "small"
    vocabulary: Size = "full"
    catalogues: int = pydantic.Field(8, ge=1)  # different ones per split
    products: int = pydantic.Field(1000, ge=4, le=2_000_000)  # of each catalogue
    attributes: tuple[int, int] = (1, 2)  # of a goal, at least and at most; or one number
    product_attributes: int = pydantic.Field(0, ge=0)  # of a product; 0: as many as goals have at most
    titled: int = pydantic.Field(0, ge=0)  # of those, how many the title tells; 0: all
    option_groups: int = pydantic.Field(1, ge=0, le=4)
    values: int = pydantic.Field(3, ge=2)  # of each option group
    distractors: int = pydantic.Field(3, ge=0)  # near-duplicates of each product that goals ask for
    differ: tuple[Difference, ...] = ("attribute", "option", "price")  # in what they may; see `differences`
    stray: float = pydantic.Field(0.0, ge=0, le=1)  # probability that one outranks the right product
    prices: Literal["coarse", "fine"] = "coarse"

    @pydantic.field_validator("attributes", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (value, value) if isinstance(value, int) else value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> ShopKnobs:
        words = vocabulary(self.vocabulary)
        low, high = self.attributes
        if not 1 <= low <= high <= self.total < len(words.attributes):
            raise ValueError(f"1 ≤ attributes ≤ product_attributes < {len(words.attributes)} must hold")
        if self.titled > self.total:
            raise ValueError(f"titled must be at most the product's {self.total} attributes")
        most = min(len(values) for _, values in words.options) - 1
        if self.values > most:
            raise ValueError(f"values must be at most {most} with the {self.vocabulary} vocabulary")
        if self.price_cap and not self.show_prices:
            raise ValueError("price_cap needs show_prices")
        if not self.differences:
            raise ValueError("differ leaves nothing in which near-duplicates could differ")
        return self

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Differences between near-duplicates: of ``differ``, what goals mention.

        Differences in an attribute or the price show in the results, those in an option only on the item's
        page, so that wrong products must be opened and left again.
        """
        mentioned = {"attribute": True, "option": self.option_groups > 0, "price": self.price_cap}
        return tuple(kind for kind in dict.fromkeys(self.differ) if mentioned[kind])

    @property
    def total(self) -> int:
        """Attributes of a product."""
        return self.product_attributes or self.attributes[1]

    def spec(self, split: Split, number: int) -> ProceduralSpec:
        """Catalogue ``number`` of a split. No two splits share one."""
        return ProceduralSpec(
            seed=digest(ENV, split.value, number),
            products=self.products,
            vocabulary=self.vocabulary,
            attributes=self.total,
            required=self.attributes[0],
            titled=self.titled or self.total,
            option_groups=self.option_groups,
            values=self.values,
            distractors=self.distractors,
            stray=self.stray,
            differ=self.differences,
            prices=self.prices,
        )


class GoodsKnobs(PageKnobs, extra="forbid", frozen=True):
    """Catalogues of goods, and requests as people make them."""

    language: Literal["natural"]
    catalogues: int = pydantic.Field(50, ge=1)  # different ones per split
    products: int = pydantic.Field(1000, ge=200, le=20_000)  # of each catalogue
    asked: tuple[int, int] = (2, 3)  # kinds of asking in a request, at least and at most
    fitting: int = pydantic.Field(3, ge=1)  # products that fulfil a request, at most

    @pydantic.model_validator(mode="after")
    def _fits(self) -> GoodsKnobs:
        if self.pages != "full":
            raise ValueError("the natural language needs pages: full, which can tell everything")
        if not 1 <= self.asked[0] <= self.asked[1] <= _KINDS_AT_ONCE:
            raise ValueError(f"1 ≤ asked ≤ {_KINDS_AT_ONCE} must hold")
        return self

    def spec(self, split: Split, number: int) -> GoodsSpec:
        """Catalogue ``number`` of a split. No two splits share one, nor the name of a brand or line."""
        return GoodsSpec(digest(ENV, "goods", split.value, number), split.value, self.products)


class WebShopKnobs(PageKnobs, extra="forbid", frozen=True):
    """The original WebShop files, in a folder of their own."""

    data: str  # the folder
    sha256: str = ""  # of the files, see datasets.py; "" accepts what is there and records it
    goals: Literal["human", "synthetic"] = "human"
    limit: int = pydantic.Field(0, ge=0)  # the first so many products; 0: all
    price_cap: bool = True


def knobs_of(values: Mapping[str, Json]) -> ShopKnobs | GoodsKnobs | WebShopKnobs:
    """Check knobs; with ``data`` they are those of the original files, with ``language: natural`` those of goods.

    Raises:
        EnvError: one is unknown or has a value that is not allowed.
    """
    natural = values.get("language") == "natural"
    kind = WebShopKnobs if "data" in values else GoodsKnobs if natural else ShopKnobs
    return check_knobs(kind, values, "shop")
