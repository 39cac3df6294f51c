"""The shop as a machine of pages: which page is open, what can be clicked there, where that leads.

    index → results (paged) → item (options, buy) → description / features / reviews / attributes

A state is a few small values and a reference to its :class:`World`, so copying one costs nothing. What a
query finds is looked up again (the catalogue remembers rankings) rather than stored.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from turnwise.envs.shop.catalogue import Catalogue, Product
from turnwise.envs.shop.reward import Goal, Score, first_colour, score, similar
from turnwise.envs.shop.search import words_of
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError


class Page(enum.StrEnum):
    """Where one can be."""

    INDEX = "index"
    RESULTS = "results"
    ITEM = "item"
    DESCRIPTION = "description"
    FEATURES = "features"
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


class Layout(NamedTuple):
    """How pages look and what they offer."""

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


class World:
    """What stays the same during an episode: the task, its catalogue, goal and layout."""

    __slots__ = ("_best", "catalogue", "goal", "gold_query", "layout", "target", "task")

    def __init__(self, task: Task, catalogue: Catalogue, goal: Goal, layout: Layout, gold_query: str) -> None:
        self.task = task
        self.catalogue = catalogue
        self.goal = goal
        self.layout = layout
        self.gold_query = gold_query
        self.target = catalogue.position(goal.asin)
        self._best: dict[int, Mapping[str, str] | None] = {}

    def best(self, item: int) -> Mapping[str, str] | None:
        """The options (group → value) with which buying ``item`` scores 1; None where nothing does."""
        if item not in self._best:
            product = self.catalogue.product(item)
            choice = choose(product, self.goal)
            bought = score(product, choice.values(), self.goal)
            self._best[item] = choice if bought.total == 1.0 else None
        return self._best[item]


class ShopState(NamedTuple):
    """A moment of an episode. ``chosen`` holds (option group, value) pairs in the item's order."""

    world: World
    page: Page = Page.INDEX
    query: str = ""
    number: int = 1  # of the results page
    item: int = -1
    chosen: tuple[tuple[str, str], ...] = ()

    @property
    def product(self) -> Product:
        """The open product; there must be one."""
        return self.world.catalogue.product(self.item)

    @property
    def results(self) -> Sequence[int]:
        return self.world.catalogue.search(self.query)

    @property
    def visible(self) -> Sequence[int]:
        """The results on the open page."""
        size = self.world.layout.per_page
        return self.results[(self.number - 1) * size : self.number * size]

    def score(self) -> Score:
        """What buying now earns."""
        return score(self.product, (value for _, value in self.chosen), self.world.goal)


class Click(NamedTuple):
    """What clicking something does. ``item``, ``option`` and ``page`` say what is opened or chosen."""

    kind: Literal["back", "previous", "next", "buy", "item", "option", "page"]
    item: int = -1
    option: tuple[str, str] = ("", "")
    page: Page = Page.ITEM


_BACK, _PREVIOUS, _NEXT, _BUY = Click("back"), Click("previous"), Click("next"), Click("buy")
_SUB_PAGES = {
    page.value: Click("page", page=page)
    for page in (Page.DESCRIPTION, Page.FEATURES, Page.REVIEWS, Page.ATTRIBUTES)
}


def search(state: ShopState, query: str) -> ShopState:
    """Search; possible on every page, as in WebShop's text mode. No word is magic."""
    words = " ".join(query.lower().split())
    if not words_of(words):
        raise ToolError("search needs words: search[...].")
    return ShopState(state.world, Page.RESULTS, words)


def click(state: ShopState, target: str) -> ShopState:
    """Follow something clickable.

    Raises:
        ToolError: it is not on this page; the text lists what is.
    """
    here = clickables(state)
    found = here.get(" ".join(target.lower().split()))
    if found is None:
        listed = "".join(f" [{name}]" for name in here)
        raise ToolError(f"[{target[:60]}] is not here. Click{listed} or search[...].")
    match found.kind:
        case "back":
            return ShopState(state.world)
        case "next":
            return state._replace(number=state.number + 1)
        case "previous":
            return _previous(state)
        case "item":
            return state._replace(page=Page.ITEM, item=found.item, chosen=())
        case "option":
            return state._replace(chosen=_choose(state, *found.option))
        case "page":
            return state._replace(page=found.page)
        case "buy":
            return state._replace(page=Page.BOUGHT)


def clickables(state: ShopState) -> dict[str, Click]:
    """What can be clicked on the open page, by its name in lower case, in the page's order."""
    names = state.world.layout.buttons
    if state.page is Page.RESULTS:
        return _result_clickables(state)
    if state.page is Page.INDEX or state.page is Page.BOUGHT:
        return {}
    if state.page is not Page.ITEM:
        return {names.back: _BACK, names.previous: _PREVIOUS}
    product, layout = state.product, state.world.layout
    here = {name: Click("option", option=pair) for name, pair in product.option_names.items()}
    here[names.back], here[names.previous] = _BACK, _PREVIOUS
    if not layout.compact:
        here |= _SUB_PAGES
        if not layout.show_attributes:
            del here["attributes"]
    elif not product.tells_all:  # compact pages have only the sub-page that tells something new
        here["features"] = _SUB_PAGES["features"]
    here[names.buy] = _BUY
    return here


def _result_clickables(state: ShopState) -> dict[str, Click]:
    layout = state.world.layout
    names, visible = layout.buttons, state.visible
    items = zip(labels(state, visible), visible, strict=True)
    here = {label.lower(): Click("item", item) for label, item in items}
    if state.number > 1:
        here[names.previous] = _PREVIOUS
    # WebShop always offers the next page, even an empty one.
    if not layout.compact or state.number * layout.per_page < len(state.results):
        here[names.next] = _NEXT
    here[names.back] = _BACK
    return here


def labels(state: ShopState, visible: Sequence[int]) -> Sequence[str]:
    """What the results on the open page are called."""
    if state.world.layout.labels == "position":
        return [str(place) for place in range(1, len(visible) + 1)]
    product = state.world.catalogue.product
    if state.world.layout.labels == "title":
        return _distinct([product(item).title for item in visible])
    return [product(item).asin for item in visible]


def _distinct(titles: Sequence[str]) -> list[str]:
    """Titles as they can be clicked: the second of two equal ones ends in 2."""
    before = [titles[:i].count(title) for i, title in enumerate(titles)]
    return [f"{title} {n + 1}" if n else title for title, n in zip(titles, before, strict=True)]


def choose(product: Product, goal: Goal) -> dict[str, str]:
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


def _choose(state: ShopState, group: str, value: str) -> tuple[tuple[str, str], ...]:
    chosen = {**dict(state.chosen), group: value}
    return tuple((name, chosen[name]) for name in state.product.options if name in chosen)


def _previous(state: ShopState) -> ShopState:
    if state.page is Page.RESULTS:
        return state._replace(number=state.number - 1)
    if state.page is Page.ITEM:
        return state._replace(page=Page.RESULTS, item=-1, chosen=())
    return state._replace(page=Page.ITEM)
