"""The shop as a web site, with the text mode's states, actions, catalogue and goals.

A page's address says which page it is; the server holds the visit's :class:`~turnwise.envs.shop.state.ShopState`,
which moves to the page that is opened. Options are chosen and orders placed by POST only. Templates mark what the
text mode says of a page (``data-say``) and what it calls by a name (``data-click``): browser.py reads that back.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from turnwise.envs.shop.actions import clickables, do_click, do_search, labels
from turnwise.envs.shop.index import words_of
from turnwise.envs.shop.pictures import picture, stars
from turnwise.envs.shop.refine import sorts
from turnwise.envs.shop.render import rating_of, refinement_text, sub_page
from turnwise.envs.shop.reward import ShopScore
from turnwise.envs.shop.state import Buttons, Page, ShopState, ShopWorld
from turnwise.envs.shop.tasks import world_of
from turnwise.envs.web.sessions import PageReply, PageRequest, SessionSite
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

_SUB_PAGES = (Page.DESCRIPTION, Page.FEATURES, Page.SPECIFICATION, Page.REVIEWS, Page.ATTRIBUTES)
_CART = 20  # things
_FULL_TEXTS = Buttons("Back to Search", "< Prev", "Next >", "Buy Now")


class Browsing(NamedTuple):
    """A visit: where in the shop it is, whether an option was just chosen there, and the cart.

    ``cart`` is None where Buy Now buys at once, as in WebShop; with a cart it holds item pages that were put there.
    """

    shop: ShopState
    just_chosen: bool = False
    cart: tuple[ShopState, ...] | None = None

    @property
    def score(self) -> ShopScore | None:
        """The score of the purchase, or None; of several products the best score, divided by their number."""
        if self.shop.page is not Page.BOUGHT:
            return None
        if not self.cart:
            return self.shop.score()
        best = max((line.score() for line in self.cart), key=lambda score: score.total)
        return best._replace(total=best.total / len(self.cart))


class ShopSite(SessionSite[Browsing]):
    """The web site of all shop tasks of this process."""

    package = "turnwise.envs.shop"

    def initial(self, task: Task) -> Browsing:
        return Browsing(ShopState(world_of(task)), cart=() if task.options.get("checkout") else None)

    def answer(self, state: Browsing, request: PageRequest) -> PageReply[Browsing]:
        if state.shop.page is Page.BOUGHT:
            return PageReply(state, render_page(state))
        if request.method == "POST":
            return _posted(state, request)
        if request.path == ("cart",) and state.cart is not None:
            return PageReply(state, _render(state, "cart", "Cart – WebShop", {"lines": state.cart}))
        try:
            shop = _opened(state.shop, request)
        except ToolError as error:  # a search without words
            return PageReply(state, render_page(state, alert=str(error)))
        if shop is None:
            return PageReply(state, _missing(state), status=404)
        if shop != state.shop:
            state = state._replace(shop=shop, just_chosen=False)
        return PageReply(state, render_page(state))


def url_of(shop: ShopState) -> str:
    """The address of the open page."""
    if shop.page is Page.INDEX or shop.page is Page.BOUGHT:
        return "/" if shop.page is Page.INDEX else "/bought"
    refined = [("sort", shop.sort)] * bool(shop.sort) + [("only", "|".join(shop.only))] * bool(shop.only)
    page = [("page", shop.number)] * (shop.number > 1)
    query = urlencode([("q", shop.query), *refined, *page])
    if shop.page is Page.RESULTS:
        return f"/search?{query}"
    asin = quote(shop.product.asin, safe="")
    sub = "" if shop.page is Page.ITEM else f"/{shop.page.value}"
    return f"/item/{asin}{sub}?{query}"


def render_page(state: Browsing, *, alert: str = "") -> str:
    """The open page as HTML; with ``alert`` it complains about something."""
    shop = state.shop
    names = {Page.INDEX: "index", Page.RESULTS: "results", Page.ITEM: "item", Page.BOUGHT: "bought"}
    name = names.get(shop.page, "sub")
    parts: dict[str, Any] = {}
    if name == "results":
        parts = _results(shop)
    elif name in ("item", "sub"):
        parts = _item(shop) | {"said": sub_page(shop.product, shop.page)}
    title = {"index": "WebShop", "results": f"{shop.query} – WebShop", "bought": "Order placed – WebShop"}
    return _render(state, name, title.get(name) or f"{shop.product.title} – WebShop", parts, alert)


# --- requests ------------------------------------------------------------------------------------


def _opened(shop: ShopState, request: PageRequest) -> ShopState | None:
    """The state of the page that is asked for; None where there is no such page."""
    world = shop.world
    match request.path:
        case ():
            return ShopState(world)
        case ("search",):
            found = do_search(shop, request.query.get("q", ""))
            return _numbered(_refined(found, request.query), request.query)
        case ("item", asin):
            return _on_item(shop, asin, request.query)
        case ("item", asin, sub):
            item = _on_item(shop, asin, request.query)
            if item is None or sub not in clickables(item):
                return None
            return do_click(item, sub)
        case _:
            return None


def _numbered(shop: ShopState, query: Mapping[str, str]) -> ShopState | None:
    """The results page of this number, if pages before it lead there."""
    number = query.get("page", "1")
    if not number.isascii() or not number.isdigit() or not 1 <= int(number[:6]) <= 1000:
        return None
    size, results = shop.world.layout.per_page, len(shop.results)
    if shop.world.layout.compact and int(number) > max(1, -(-results // size)):
        return None
    return shop._replace(number=int(number))


def _refined(found: ShopState, query: Mapping[str, str]) -> ShopState:
    """Results sorted and filtered as an address says; ways that there are not are passed over."""
    names = found.world.refinements(found.query)
    sort = query.get("sort", "")
    only = tuple(sorted(name for name in {*query.get("only", "").split("|")} & {*names} if not sorts(name)))
    return found._replace(sort=sort if sort in names and sorts(sort) else "", only=only)


def _on_item(shop: ShopState, asin: str, query: Mapping[str, str]) -> ShopState | None:
    """The state on an item's page. Options stay chosen while one stays with the item."""
    position = shop.world.catalogue.position(asin)
    words = query.get("q", "")
    if position is None or not words_of(words):
        return None
    results = _numbered(_refined(do_search(shop, words), query), query)
    if results is None:
        return None
    stays = shop == results._replace(page=shop.page, item=position, chosen=shop.chosen, read=shop.read)
    return results._replace(
        page=Page.ITEM, item=position, chosen=shop.chosen if stays else (), read=shop.read if stays else ()
    )


def _posted(state: Browsing, request: PageRequest) -> PageReply[Browsing]:
    shop, names = state.shop, state.shop.world.layout.buttons
    if state.cart is not None and request.path in (("buy",), ("remove",), ("order",)):
        return _with_cart(state, state.cart, request)
    wanted = names.buy if request.path == ("buy",) else request.form.get("option", "").lower()
    found = clickables(shop).get(" ".join(wanted.split()))
    if shop.page is not Page.ITEM or found is None or found.kind not in ("option", "buy"):
        return PageReply(state, redirect=url_of(shop))
    after = do_click(shop, wanted)
    state = state._replace(shop=after, just_chosen=after.chosen != shop.chosen)
    return PageReply(state, redirect=url_of(after))


def _with_cart(state: Browsing, cart: tuple[ShopState, ...], request: PageRequest) -> PageReply[Browsing]:
    match request.path[0]:
        case "buy" if state.shop.page is Page.ITEM and len(cart) < _CART:
            cart = (*cart, state.shop)
        case "remove":
            number = request.form.get("line", "")
            cart = tuple(line for place, line in enumerate(cart) if str(place) != number)
        case "order" if cart:
            return PageReply(state._replace(shop=cart[-1]._replace(page=Page.BOUGHT)), redirect="/bought")
        case _:
            pass
    return PageReply(state._replace(cart=cart, just_chosen=False), redirect="/cart")


# --- what templates are given --------------------------------------------------------------------


class ResultRow(NamedTuple):
    """One result."""

    url: str
    name: str  # as it is clicked
    label: str
    title: str
    price: str
    rating: str
    picture: Markup
    stars: str


class RefineLink(NamedTuple):
    """A way to sort or filter results."""

    url: str
    name: str
    text: str
    chosen: bool


def _results(shop: ShopState) -> dict[str, Any]:
    world, visible = shop.world, shop.visible
    rows = [
        ResultRow(
            url_of(shop._replace(page=Page.ITEM, item=item)),
            label.lower(),
            label,
            world.catalogue.product(item).title,
            _price(world, world.catalogue.product(item).price),
            "" if world.layout.compact else "".join(rating_of(world.catalogue.product(item))),
            Markup(picture(world.catalogue.product(item))),
            stars(world.catalogue.product(item)),
        )
        for label, item in zip(labels(shop, visible), visible, strict=True)
    ]
    return {
        "rows": rows,
        "total": len(shop.results),
        "first": (shop.number - 1) * world.layout.per_page + 1,
        "refine": [_refine_link(shop, name) for name in shop.world.refinements(shop.query)],
        "page_url": lambda number: url_of(shop._replace(number=number)),
    }


def _refine_link(shop: ShopState, name: str) -> RefineLink:
    chosen = name == shop.sort or name in shop.only
    return RefineLink(url_of(do_click(shop, name)), name, refinement_text(shop, name), chosen)


def _item(shop: ShopState) -> dict[str, Any]:
    product, world, chosen = shop.product, shop.world, dict(shop.chosen)
    groups: dict[str, dict[str, Any]] = {}
    for name, (group, value) in product.option_names.items():
        told = f"{group} (chosen: {chosen[group]})" if group in chosen and not world.layout.compact else group
        made = groups.setdefault(group, {"heading": told, "options": []})
        made["options"].append({"name": name, "chosen": chosen.get(group) == value})
    here = clickables(shop._replace(page=Page.ITEM))
    texts = {page: page.value if world.layout.compact else page.value.capitalize() for page in _SUB_PAGES}
    subs = [
        {"url": url_of(shop._replace(page=page)), "name": page.value, "text": texts[page]}
        for page in _SUB_PAGES
        if page.value in here
    ]
    price = _price(world, product.price_with(chosen.values()))
    return {
        "product": product,
        "picture": Markup(picture(product, chosen.get("color", ""))),
        "stars": stars(product),
        "table": product.specification if shop.page is Page.SPECIFICATION else (),
        "price": price if world.layout.compact else f"Price: {price}",
        "groups": list(groups.values()),
        "chosen": list(chosen.values()),
        "subs": subs,
        "item_url": url_of(shop._replace(page=Page.ITEM)),
        "results_url": url_of(shop._replace(page=Page.RESULTS, item=-1, chosen=(), read=())),
    }


def _price(world: ShopWorld, price: float) -> str:
    if world.layout.compact:
        return f"${price:.2f}".removesuffix(".00") if world.layout.show_prices else ""
    return f"${price:.2f}"


def _missing(state: Browsing) -> str:
    return _render(state, "missing", "No such page – WebShop", {})


def _render(state: Browsing, page: str, title: str, parts: Mapping[str, Any], alert: str = "") -> str:
    layout = state.shop.world.layout
    return _template().render(
        page=page,
        title=title,
        shop=state.shop,
        prompt=state.shop.world.task.prompt,
        layout=layout,
        compact=layout.compact,
        names=layout.buttons,
        texts=layout.buttons if layout.compact else _FULL_TEXTS,
        rank={name: place for place, name in enumerate(clickables(state.shop))},
        alert=alert,
        cart=state.cart,
        just_chosen=state.just_chosen,
        **parts,
    )


@functools.cache
def _template() -> Any:
    loader = PackageLoader("turnwise.envs.shop", "templates")
    made = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return made.get_template("page.html.j2")
