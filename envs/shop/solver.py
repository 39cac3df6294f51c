"""Choice of the next action: gold, how far it is, and an imperfect scripted policy."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from turnwise.envs.shop.actions import labels
from turnwise.envs.shop.state import Page, ShopState, choose


def gold(state: ShopState) -> str:
    """The next action of a purchase that scores 1."""
    world = state.world
    if state.item >= 0 and (best := world.best(state.item)) is not None:
        unread = [page for page in _evidence(state) if page not in state.read]
        if unread and not state.chosen:
            back = world.layout.buttons.previous
            return f"click[{unread[0].value if state.page is Page.ITEM else back}]"
        return f"click[{_towards_purchase(state, best)}]"
    results = state.results if state.query else ()
    if world.target not in results:
        return f"search[{world.gold_query}]"
    if state.page is not Page.RESULTS:  # of a wrong product
        return f"click[{world.layout.buttons.previous}]"
    visible = state.visible
    if world.target in visible:
        return f"click[{labels(state, visible)[visible.index(world.target)]}]"
    page = results.index(world.target) // world.layout.per_page + 1
    buttons = world.layout.buttons
    return f"click[{buttons.next if page > state.number else buttons.previous}]"


def demonstrate(state: ShopState, rng: Random) -> str:
    """An imperfect scripted policy: takes any product on the page whose title has a word that was asked for, and
    buys it. It knows how the shop works, and succeeds about one time in four on ``shop/quick``."""
    if state.item >= 0:
        return f"click[{_towards_purchase(state, choose(state.product, state.world.goal))}]"
    if state.page is not Page.RESULTS or not state.visible:
        return gold(state)
    visible, product = state.visible, state.world.catalogue.product
    asked, conditions = {*state.world.goal.attributes}, state.world.goal.conditions
    near = [item for item in visible if asked & {*product(item).title.split()}]
    if conditions:  # goods whose titles say little: whatever fulfils all but one of the conditions
        missed = {item: sum(not one.holds(product(item).facts) for one in conditions) for item in visible}
        near = [item for item in visible if missed[item] <= 1]
    item = rng.choice(near or list(visible))
    return f"click[{labels(state, visible)[visible.index(item)]}]"


def potential(state: ShopState) -> float:
    """The share of what is right so far: the target found, a fitting item open, its options chosen."""
    world = state.world
    steps = len(world.goal.options) + 3
    found = bool(state.query) and world.target in state.results
    best = world.best(state.item) if state.item >= 0 else None
    if best is None:
        return found / steps
    right = sum(best.get(group) == value for group, value in state.chosen)
    return (2 + right) / steps


def _evidence(state: ShopState) -> list[Page]:
    """The sub-pages that tell whether the open item fulfils the conditions; gold reads them before it buys."""
    told = {_TELLS.get(condition.fact, Page.SPECIFICATION) for condition in state.world.goal.conditions}
    return [page for page in (Page.FEATURES, Page.SPECIFICATION, Page.REVIEWS) if page in told]


_TELLS = {
    "features": Page.FEATURES,
    "opinions": Page.REVIEWS,
    **dict.fromkeys(("price", "rating", "reviews", "color", "size"), Page.ITEM),
}
"""Fact → the page that tells it, where that is not the specification."""


def _towards_purchase(state: ShopState, best: Mapping[str, str]) -> str:
    """Name the next click, once an item is open that can score 1."""
    buttons = state.world.layout.buttons
    if state.page is not Page.ITEM:
        return buttons.previous
    chosen = dict(state.chosen)
    names = {pair: name for name, pair in state.product.option_names.items()}
    for pair in best.items():
        if chosen.get(pair[0]) != pair[1]:
            return names[pair]
    return buttons.buy
