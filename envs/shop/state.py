"""The shop's state: which page is open (actions.py says what can be clicked there and where it leads).

    index → results (paged) → item (options, buy) → description / features / reviews / attributes

A state is a few small values and a reference to its :class:`ShopWorld`, so copying one costs nothing. What a
query finds is looked up again (the catalogue remembers rankings) rather than stored.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from turnwise.envs.shop.catalogue import Catalogue, Product
from turnwise.envs.shop.refine import refined
from turnwise.envs.shop.reward import ShopGoal, ShopScore, first_colour, score, similar
from turnwise.tasks.core import Task


class Page(enum.StrEnum):
    """Pages of the shop."""

    INDEX = "index"
    RESULTS = "results"
    ITEM = "item"
    DESCRIPTION = "description"
    FEATURES = "features"
    SPECIFICATION = "specification"
    REVIEWS = "reviews"
    ATTRIBUTES = "attributes"
    BOUGHT = "bought"


class Buttons(NamedTuple):
    """The names of the buttons, as clicked (lower case)."""

    back: str
    previous: str
    next: str
    buy: str


FULL = Buttons("back to search", "< prev", "next >", "buy now")
COMPACT = Buttons("back", "prev", "next", "buy")


class ShopLayout(NamedTuple):
    """Look of the pages, and what they offer."""

    pages: Literal["compact", "full"] = "full"
    labels: Literal["asin", "position", "title"] = "asin"
    per_page: int = 10
    show_prices: bool = True
    show_attributes: bool = False

    @property
    def compact(self) -> bool:
        return self.pages == "compact"

    @property
    def buttons(self) -> Buttons:
        return COMPACT if self.pages == "compact" else FULL


class ShopWorld:
    """The part of an episode that stays the same: the task, its catalogue, goal and layout."""

    __slots__ = (
        "__weakref__",
        "_best",
        "_refined",
        "catalogue",
        "goal",
        "gold_query",
        "layout",
        "target",
        "task",
    )

    def __init__(
        self, task: Task, catalogue: Catalogue, goal: ShopGoal, layout: ShopLayout, gold_query: str
    ) -> None:
        self.task = task
        self.catalogue = catalogue
        self.goal = goal
        self.layout = layout
        self.gold_query = gold_query
        self.target = catalogue.position(goal.asin)
        self._refined: dict[tuple[str, str, tuple[str, ...]], Sequence[int]] = {}
        self._best: dict[int, Mapping[str, str] | None] = {}

    def best(self, item: int) -> Mapping[str, str] | None:
        """The options (group → value) with which buying ``item`` scores 1; None where nothing does."""
        if item not in self._best:
            product = self.catalogue.product(item)
            choices = [choose(product, self.goal), *(every_choice(product) if self.goal.conditions else ())]
            right = (one for one in choices if score(product, one.values(), self.goal).total == 1.0)
            self._best[item] = next(right, None)
        return self._best[item]

    def results(self, query: str, sort: str, only: tuple[str, ...]) -> Sequence[int]:
        """Return the results of a search, sorted and filtered."""
        facts, found = self.catalogue.facts, self.catalogue.search(query)
        if facts is None or not (sort or only):
            return found
        key = query, sort, only
        if key not in self._refined:
            self._refined[key] = refined(facts, found, sort, only)
        return self._refined[key]

    def refinements(self, query: str) -> Sequence[str]:
        """The ways to sort and filter what a search finds; none where the catalogue knows no facts."""
        return () if self.layout.compact else self.catalogue.refinements(query)


class ShopState(NamedTuple):
    """A moment of an episode. ``chosen`` holds (option group, value) pairs in the item's order."""

    world: ShopWorld
    page: Page = Page.INDEX
    query: str = ""
    number: int = 1  # of the results page
    item: int = -1
    chosen: tuple[tuple[str, str], ...] = ()
    sort: str = ""  # of the results; see refine.py
    only: tuple[str, ...] = ()  # filters of the results
    read: tuple[Page, ...] = ()  # sub-pages of the open item that were opened

    @property
    def product(self) -> Product:
        """The open product; there must be one."""
        return self.world.catalogue.product(self.item)

    @property
    def results(self) -> Sequence[int]:
        return self.world.results(self.query, self.sort, self.only)

    @property
    def visible(self) -> Sequence[int]:
        """The results on the open page."""
        size = self.world.layout.per_page
        return self.results[(self.number - 1) * size : self.number * size]

    def score(self) -> ShopScore:
        """Return the score of buying now."""
        return score(self.product, (value for _, value in self.chosen), self.world.goal)


def every_choice(product: Product) -> list[dict[str, str]]:
    """All ways to choose options or to leave them, the shortest first."""
    groups = [[(group, value) for value in ("", *values)] for group, values in product.options.items()]
    choices = [{g: v for g, v in pairs if v} for pairs in itertools.product(*groups)]
    return sorted(choices, key=len)


def choose(product: Product, goal: ShopGoal) -> dict[str, str]:
    """For each wanted option the group and value of ``product`` that match it best, where one does."""
    pairs = [(group, value) for group, values in product.options.items() for value in values]
    choice: dict[str, str] = {}
    for want in goal.options:
        near = [pair for pair in pairs if pair[1] == want]
        near = near or [pair for pair in pairs if similar(first_colour(pair[1]), first_colour(want))]
        group, value = next((pair for pair in near if pair[0] not in choice), ("", ""))
        if group:
            choice[group] = value
    return choice
