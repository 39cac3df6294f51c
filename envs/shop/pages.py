"""What the pages say: WebShop's " [SEP] " text, or a compact form for small models."""

from __future__ import annotations

from collections.abc import Iterable

from turnwise.envs.shop.engine import SUB_PAGES, Page, ShopState, clickables, labels, option_names

_SUB_TITLES = {page: page.value.capitalize() for page in SUB_PAGES}


def render(state: ShopState, *, just_chosen: bool = False) -> str:
    """The open page as text. After an option click (``just_chosen``) compact pages say only what changed."""
    if state.world.layout.pages == "compact":
        return _compact(state, just_chosen)
    return " [SEP] ".join(_full(state))


def _full(state: ShopState) -> Iterable[str]:
    product = state.product if state.item >= 0 else None
    if state.page is Page.BOUGHT:
        return ("Thank you for shopping with us!",)
    instruction = ("Instruction:", state.world.task.prompt)
    if state.page is Page.INDEX:
        return ("WebShop", *instruction, "Search")
    if state.page is Page.RESULTS:
        return (*instruction, "Back to Search", *_full_results(state))
    assert product is not None
    if state.page is Page.ITEM:
        return (*instruction, "Back to Search", "< Prev", *_full_item(state))
    text = {
        Page.DESCRIPTION: (product.description,),
        Page.FEATURES: product.bullets,
        Page.REVIEWS: product.reviews or ("No reviews yet",),
        Page.ATTRIBUTES: product.attributes,
    }[state.page]
    return (*instruction, "Back to Search", "< Prev", *text)


def _full_results(state: ShopState) -> Iterable[str]:
    yield f"Page {state.number} (Total results: {len(state.results)})"
    if state.number > 1:
        yield "< Prev"
    yield "Next >"
    for label, item in zip(labels(state), state.visible, strict=True):
        product = state.world.catalogue.product(item)
        yield from (label, product.title, f"${product.price:.2f}")


def _full_item(state: ShopState) -> Iterable[str]:
    product, chosen = state.product, dict(state.chosen)
    names = {pair: name for name, pair in option_names(product, state.world.layout).items()}
    for group, values in product.options.items():
        yield f"{group} (chosen: {chosen[group]})" if group in chosen else group
        for value in dict.fromkeys(values):
            yield names[group, value]
    yield from (product.title, f"Price: ${product.price:.2f}", f"Rating: {product.rating}")
    yield from (title for page, title in _SUB_TITLES.items() if page.value in clickables(state))
    yield "Buy Now"


def _compact(state: ShopState, just_chosen: bool) -> str:
    world, product = state.world, state.product if state.item >= 0 else None
    if state.page is Page.INDEX:
        return f"{world.task.prompt}"
    if state.page is Page.BOUGHT:
        return "bought"
    if state.page is Page.RESULTS:
        lines = [
            f"[{label}] {_priced(state, item)}" for label, item in zip(labels(state), state.visible, strict=True)
        ]
        shown = len(lines)
        return "\n".join([*(lines or ["nothing found"]), _buttons(state, shown)])
    assert product is not None
    if state.page is Page.ITEM:
        chosen = " ".join(value for _, value in state.chosen)
        lines = [f"chosen {chosen}"] if chosen else []
        if just_chosen:
            return "\n".join([*lines, _buttons(state, len(option_names(product, world.layout)))])
        names = {pair: name for name, pair in option_names(product, world.layout).items()}
        for group, values in product.options.items():
            lines.append(f"{group} " + " ".join(f"[{names[group, value]}]" for value in dict.fromkeys(values)))
        return "\n".join([_priced(state, state.item), *lines, _buttons(state, len(names))])
    text = {Page.DESCRIPTION: product.description, Page.FEATURES: "\n".join(product.bullets)}.get(state.page)
    if text is None:
        text = "\n".join(product.reviews if state.page is Page.REVIEWS else product.attributes)
    return f"{text}\n{_buttons(state, 0)}"


def _buttons(state: ShopState, after: int) -> str:
    """The clickable names that follow the first ``after`` ones."""
    return " ".join(f"[{name}]" for name in list(clickables(state))[after:])


def _priced(state: ShopState, item: int) -> str:
    product = state.world.catalogue.product(item)
    whole = product.price.is_integer()
    return f"{product.title} ${product.price:.0f}" if whole else f"{product.title} ${product.price:.2f}"
