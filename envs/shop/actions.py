"""Actions: the tools, how calls are read from a message, what can be clicked and where it leads."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from turnwise.envs.acting import call_of
from turnwise.envs.messages import Message
from turnwise.envs.shop.index import words_of
from turnwise.envs.shop.refine import sorts
from turnwise.envs.shop.state import Page, ShopState
from turnwise.tools.core import ToolCall, ToolError, tool


def search(query: str) -> str:
    """Search the shop for products. Possible on every page."""
    return f"search[{query}]"


def click(target: str) -> str:
    """Click something on the page: a product, an option value or a button."""
    return f"click[{target}]"


TOOLS = (tool(search), tool(click))


class Click(NamedTuple):
    """Effect of a click. ``item``, ``option`` and ``page`` say what is opened or chosen."""

    kind: Literal["back", "previous", "next", "buy", "item", "option", "page", "sort", "filter"]
    item: int = -1
    option: tuple[str, str] = ("", "")
    page: Page = Page.ITEM
    name: str = ""  # of a way to sort or filter


_NOT_HERE = 60  # characters of a name that are repeated
_BACK, _PREVIOUS, _NEXT, _BUY = Click("back"), Click("previous"), Click("next"), Click("buy")
_SUB_PAGES = {
    page.value: Click("page", page=page)
    for page in (Page.DESCRIPTION, Page.FEATURES, Page.SPECIFICATION, Page.REVIEWS, Page.ATTRIBUTES)
}


def read(action: Message) -> ToolCall:
    """The one call in a message.

    Raises:
        ToolError: there is none, or more than one.
    """
    return call_of(action, TOOLS)


def do_search(state: ShopState, query: str) -> ShopState:
    """Search; possible on every page, as in WebShop's text mode. No word is magic."""
    words = " ".join(query.lower().split())
    if not words_of(words):
        raise ToolError("search needs words: search[...].")
    return ShopState(state.world, Page.RESULTS, words)


def do_click(state: ShopState, target: str) -> ShopState:
    """Follow something clickable.

    Raises:
        ToolError: it is not on this page; the text lists what is.
    """
    here = clickables(state)
    found = here[named(target, here)]
    match found.kind:
        case "back":
            return ShopState(state.world)
        case "next":
            return state._replace(number=state.number + 1)
        case "previous":
            return _previous(state)
        case "item":
            return state._replace(page=Page.ITEM, item=found.item, chosen=(), read=())
        case "option":
            return state._replace(chosen=_choose(state, *found.option))
        case "page":
            return state._replace(page=found.page, read=tuple(sorted({*state.read, found.page})))
        case "sort":
            return state._replace(sort="" if state.sort == found.name else found.name, number=1)
        case "filter":
            return state._replace(only=_toggled(state.only, found.name), number=1)
        case "buy":
            return state._replace(page=Page.BOUGHT)


def named(target: str, here: Collection[str]) -> str:
    """Return the thing on a page that is meant: one of this name, else the only one of the same words.

    Signs and what a page adds to the name of a chosen thing do not matter.

    >>> named("Next", ["< prev", "next >"]), named("sort by price (chosen)", ["sort by price", "under $50"])
    ('next >', 'sort by price')

    Raises:
        ToolError: there is none, or more than one; the text lists what is there.
    """
    wanted = " ".join(target.lower().split())
    if wanted in here:
        return wanted
    words = words_of(wanted.removesuffix("(chosen)"))
    alike = [name for name in here if words_of(name) == words]
    if words and len(alike) == 1:
        return alike[0]
    listed = "".join(f" [{name}]" for name in here)
    ways = f"Click{listed} or search[...]." if here else "Here you can only search[...]."
    raise ToolError(f"[{target[:_NOT_HERE]}] is not here. {ways}")


def clickables(state: ShopState) -> dict[str, Click]:
    """Return the clicks on the open page, by their name in lower case, in the page's order."""
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
        if not product.specification:
            del here["specification"]
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
    return here | {
        name: Click("sort" if sorts(name) else "filter", name=name)
        for name in state.world.refinements(state.query)
    }


def _toggled(only: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(sorted({*only} ^ {name}))


def possible(state: ShopState) -> Sequence[str]:
    """Searches for what is asked for, and everything that can be clicked."""
    if state.page is Page.BOUGHT:
        return ()
    goal = state.world.goal
    thing = " ".join((*goal.attributes, *goal.nouns))
    searches = dict.fromkeys((thing, " ".join(goal.nouns), f"{thing} {' '.join(goal.options)}".strip()))
    return [f"search[{query}]" for query in searches if query] + [
        f"click[{name}]" for name in clickables(state)
    ]


def labels(state: ShopState, visible: Sequence[int]) -> Sequence[str]:
    """Return the labels of the results on the open page."""
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


def _choose(state: ShopState, group: str, value: str) -> tuple[tuple[str, str], ...]:
    chosen = {**dict(state.chosen), group: value}
    return tuple((name, chosen[name]) for name in state.product.options if name in chosen)


def _previous(state: ShopState) -> ShopState:
    if state.page is Page.RESULTS:
        return state._replace(number=state.number - 1)
    if state.page is Page.ITEM:
        return state._replace(page=Page.RESULTS, item=-1, chosen=(), read=())
    return state._replace(page=Page.ITEM)
