"""Rendering of the pages: WebShop's " [SEP] " text, or a compact form for small models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from turnwise.envs.shop.actions import clickables, labels
from turnwise.envs.shop.catalogue import Product
from turnwise.envs.shop.state import Page, ShopState

SYSTEM = {
    "compact": "Shop: search[words] or click[x].",
    "full": (
        "You are in a web shop. Buy the product that the instruction asks for, with the options it names. "
        "Each turn, write one action: search[words] or click[something on the page]. Click an option's value "
        "to choose it; click[buy now] buys and ends the episode. A search shows goods; click one to open its page. Options, "
        "Buy Now and the pages of details (Description, Features, Reviews) are on that page only: from a page of "
        "details, click[< prev] leads back to it."
    ),
}


def render(state: ShopState, *, just_chosen: bool = False) -> str:
    """The open page as text. After an option click (``just_chosen``) compact pages say only what changed."""
    if state.world.layout.compact:
        return "\n".join(_compact(state, just_chosen))
    return " [SEP] ".join(_full(state))


def _full(state: ShopState) -> Iterable[str]:
    instruction = ("Instruction:", state.world.task.prompt)
    match state.page:
        case Page.INDEX:
            return ("WebShop", *instruction, "Search")
        case Page.RESULTS:
            return (*instruction, "Back to Search", *_full_results(state))
        case Page.ITEM:
            return (*instruction, "Back to Search", "< Prev", *_full_item(state))
        case Page.BOUGHT:
            return ("Thank you for shopping with us!",)
        case _:
            return (*instruction, "Back to Search", "< Prev", *sub_page(state.product, state.page))


def _full_results(state: ShopState) -> list[str]:
    visible = state.visible
    parts = [f"Page {state.number} (Total results: {len(state.results)})"]
    if state.number > 1:
        parts.append("< Prev")
    parts.append("Next >")
    parts += (refinement_text(state, name) for name in state.world.refinements(state.query))
    for label, item in zip(labels(state, visible), visible, strict=True):
        product = state.world.catalogue.product(item)
        named = (label,) if state.world.layout.labels == "title" else (label, product.title)
        parts += (*named, f"${product.price:.2f}", *rating_of(product))
    return parts


def _full_item(state: ShopState) -> list[str]:
    product, chosen = state.product, dict(state.chosen)
    parts: list[str] = []
    heading = ""
    for name, (group, _) in product.option_names.items():
        if group != heading:
            parts.append(f"{group} (chosen: {chosen[group]})" if group in chosen else group)
            heading = group
        parts.append(name)
    price = product.price_with(chosen.values())
    parts += (product.title, f"Price: ${price:.2f}", f"Rating: {product.rating}")
    parts += ("Description", "Features", *(["Specification"] if product.specification else []), "Reviews")
    if state.world.layout.show_attributes:
        parts.append("Attributes")
    return [*parts, "Buy Now"]


def refinement_text(state: ShopState, name: str) -> str:
    """A way to sort or filter, as results show it."""
    return f"{name} (chosen)" if name == state.sort or name in state.only else name


def rating_of(product: Product) -> list[str]:
    """The rating as results show it: nothing where products have none."""
    return [] if product.rating == "N.A." else [product.rating]


def sub_page(product: Product, page: Page) -> Sequence[str]:
    """Return the texts of an item's sub-page."""
    match page:
        case Page.DESCRIPTION:
            return (product.description,)
        case Page.FEATURES:
            return product.bullets
        case Page.SPECIFICATION:
            return tuple(f"{name}: {value}" for name, value in product.specification)
        case Page.REVIEWS:
            return product.reviews or ("No reviews yet",)
        case _:
            return product.attributes


def _compact(state: ShopState, just_chosen: bool) -> list[str]:
    buttons = clickables(state)
    match state.page:
        case Page.INDEX:
            return [state.world.task.prompt]
        case Page.RESULTS:
            visible = state.visible
            named = zip(labels(state, visible), visible, strict=True)
            lines = [_result(state, label, item) for label, item in named]
            return [*(lines or ["nothing found"]), _bracketed(list(buttons)[len(visible) :])]
        case Page.ITEM:
            return _compact_item(state, just_chosen, list(buttons))
        case Page.BOUGHT:
            return ["bought"]
        case _:
            return [*sub_page(state.product, state.page), _bracketed(buttons)]


def _compact_item(state: ShopState, just_chosen: bool, names: Sequence[str]) -> list[str]:
    product = state.product
    lines = [] if just_chosen else [_line(state, state.item)]
    if not just_chosen:
        groups: dict[str, list[str]] = {}
        for name, (group, _) in product.option_names.items():
            groups.setdefault(group, []).append(name)
        lines += (f"{group} {_bracketed(offered)}" for group, offered in groups.items())
    if state.chosen:
        lines.append("chosen " + " ".join(value for _, value in state.chosen))
    return [*lines, _bracketed(names[len(product.option_names) :])]


def _bracketed(names: Iterable[str]) -> str:
    return " ".join(f"[{name}]" for name in names)


def _result(state: ShopState, label: str, item: int) -> str:
    title = "" if state.world.layout.labels == "title" else f" {state.world.catalogue.product(item).title}"
    return f"[{label}]{title}{_price(state, item)}"


def _line(state: ShopState, item: int) -> str:
    return state.world.catalogue.product(item).title + _price(state, item)


def _price(state: ShopState, item: int) -> str:
    if not state.world.layout.show_prices:
        return ""
    return f" ${state.world.catalogue.product(item).price:.2f}".removesuffix(".00")
