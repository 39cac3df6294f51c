"""The shop as a machine of pages: which page is open, what can be clicked there, what it shows.

    index → results (paged) → item (options, buy) → description / features / reviews / attributes

A state is a few small values and a reference to its :class:`World`, so copying one costs nothing. What a
query finds is looked up again (the catalogue remembers rankings) rather than stored.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

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


SUB_PAGES = (Page.DESCRIPTION, Page.FEATURES, Page.REVIEWS, Page.ATTRIBUTES)


class Buttons(NamedTuple):
    """The names of the buttons, as clicked (lower case)."""

    back: str
    previous: str
    next: str
    buy: str


FULL = Buttons("back to search", "< prev", "next >", "buy now")
COMPACT = Buttons("back", "prev", "next", "buy")


@dataclass(frozen=True)
class Layout:
    """How pages look and what they offer."""

    pages: Literal["compact", "full"] = "full"
    labels: Literal["asin", "position"] = "asin"
    per_page: int = 10
    show_attributes: bool = False

    @property
    def buttons(self) -> Buttons:
        return COMPACT if self.pages == "compact" else FULL


class World:
    """What stays the same during an episode: the catalogue, the goal, the layout, the instruction."""

    def __init__(self, task: Task, catalogue: Catalogue, goal: Goal, layout: Layout, query: str) -> None:
        self.task = task
        self.catalogue = catalogue
        self.goal = goal
        self.layout = layout
        self.gold_query = query
        self.target = catalogue.position(goal.asin)
        self.best = functools.lru_cache(maxsize=1024)(self._best)

    def _best(self, item: int) -> Mapping[str, str] | None:
        """The options with which buying ``item`` scores 1; None where nothing does."""
        product = self.catalogue.product(item)
        choice = choose(product, self.goal)
        bought = score(product, choice.values(), product.price, self.goal)
        return choice if bought.total == 1.0 else None

    def __reduce__(self) -> tuple[Callable[[Task], World], tuple[Task]]:
        from turnwise.envs.shop.goals import world_of

        return world_of, (self.task,)


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
        product = self.product
        return score(product, (value for _, value in self.chosen), product.price, self.world.goal)


class Click(NamedTuple):
    """What a clickable thing does: ``kind`` is a button's name, ``item``, ``option`` or ``sub``."""

    kind: str
    value: Any = None


def search(state: ShopState, query: str) -> ShopState:
    """Search; possible on every page, as in WebShop's text mode. There are no magic words."""
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
        listed = " ".join(f"[{name}]" for name in here)
        raise ToolError(f"[{target[:60]}] is not here. Click {listed} or search[...].".replace("  ", " "))
    match found.kind:
        case "back":
            return ShopState(state.world)
        case "next":
            return state._replace(number=state.number + 1)
        case "previous":
            return _previous(state)
        case "item":
            return state._replace(page=Page.ITEM, item=found.value, chosen=())
        case "sub":
            return state._replace(page=found.value)
        case "option":
            return state._replace(chosen=_choose(state, *found.value))
        case _:
            return state._replace(page=Page.BOUGHT)


def clickables(state: ShopState) -> Mapping[str, Click]:
    """What can be clicked on the open page, by its name in lower case, in the page's order."""
    layout = state.world.layout
    names, compact = layout.buttons, layout.pages == "compact"
    if state.page is Page.INDEX or state.page is Page.BOUGHT:
        return {}
    if state.page is Page.RESULTS:
        here: dict[str, Click] = {}
        if not compact:
            here[names.back] = Click("back")
        for label, item in zip(labels(state), state.visible, strict=True):
            here[label.lower()] = Click("item", item)
        if state.number > 1:
            here[names.previous] = Click("previous")
        if not compact or state.number * layout.per_page < len(state.results):
            here[names.next] = Click("next")
        here.setdefault(names.back, Click("back"))
        return here
    if state.page is Page.ITEM:
        subs = [page for page in SUB_PAGES if _offers(state, page)]
        buttons = {names.back: Click("back"), names.previous: Click("previous")}
        buttons |= {page.value: Click("sub", page) for page in subs} | {names.buy: Click("buy")}
        options = {name: Click("option", pair) for name, pair in option_names(state.product, layout).items()}
        return options | buttons
    return {names.back: Click("back"), names.previous: Click("previous")}


def labels(state: ShopState) -> Sequence[str]:
    """What the visible results are called."""
    if state.world.layout.labels == "position":
        return [str(place) for place in range(1, len(state.visible) + 1)]
    return [state.world.catalogue.product(item).asin for item in state.visible]


def option_names(product: Product, layout: Layout) -> Mapping[str, tuple[str, str]]:
    """Clickable name → (group, value). A value is its own name unless two groups or a button share it.

    >>> product = Product("B0", "x", "", "", 1.0, options={"color": ("red", "natural"), "scent": ("natural",)})
    >>> list(option_names(product, Layout()))
    ['red', 'color: natural', 'scent: natural']
    """
    values = [value for group in product.options.values() for value in dict.fromkeys(group)]
    taken = {*layout.buttons, *(page.value for page in SUB_PAGES)}
    names: dict[str, tuple[str, str]] = {}
    for group, offered in product.options.items():
        for value in offered:
            alone = values.count(value) == 1 and value not in taken
            names[value if alone else f"{group}: {value}"] = (group, value)
    return names


def choose(product: Product, goal: Goal) -> dict[str, str]:
    """For each wanted option the group and value of ``product`` that match it best, where one does."""
    choice: dict[str, str] = {}
    for want in goal.options:
        pairs = [(group, value) for group, values in product.options.items() for value in values]
        exact = [pair for pair in pairs if pair[1] == want]
        near = exact or [pair for pair in pairs if similar(first_colour(pair[1]), first_colour(want))]
        free = [pair for pair in near if pair[0] not in choice]
        if free:
            choice[free[0][0]] = free[0][1]
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


def _offers(state: ShopState, page: Page) -> bool:
    layout = state.world.layout
    if page is Page.ATTRIBUTES:
        return layout.show_attributes
    # Compact pages offer only the sub-page that may tell something new.
    return layout.pages == "full" or (page is Page.FEATURES and _untold(state.product))


def _untold(product: Product) -> bool:
    return any(attribute not in product.title for attribute in product.attributes)
