"""Acts of a persona in the shop, page by page, by the text mode's rules."""

from __future__ import annotations

from random import Random

from turnwise.envs.shop.actions import clickables, do_click, do_search, labels
from turnwise.envs.shop.human.actions import SEARCH, HumanAct
from turnwise.envs.shop.human.personas import Persona
from turnwise.envs.shop.human.state import HumanMemory, HumanMoment
from turnwise.envs.shop.state import Page, ShopState, ShopWorld, choose

LONGEST = 30  # actions of a session


def play(world: ShopWorld, persona: Persona, whim: float, rng: Random) -> tuple[HumanMoment, ...]:
    """A session, from the start page to a purchase or to leaving. With probability ``whim`` each act is any."""
    shop, mind, moments = ShopState(world), HumanMemory(), list[HumanMoment]()
    while True:
        usual = act = habit(persona, shop, mind)
        if len(moments) + 1 == LONGEST:
            act = HumanAct("terminate")
        elif rng.random() < whim:
            act = _whim(shop, rng, usual)
        moments.append(HumanMoment(shop, mind, act, usual))
        after = perform(shop, act)
        if after is None or after.page is Page.BOUGHT:
            return tuple(moments)
        shop, mind = after, remember(mind, shop, after, act)


def perform(shop: ShopState, act: HumanAct) -> ShopState | None:
    """The page after an act; None after leaving."""
    if act.type == "terminate":
        return None
    return do_search(shop, act.text) if act.type == "type_and_submit" else do_click(shop, act.name)


def remember(mind: HumanMemory, before: ShopState, after: ShopState, act: HumanAct) -> HumanMemory:
    """Return the memory after an act."""
    if act.type == "type_and_submit":
        return HumanMemory(mind.searches + 1, mind.seen, mind.fitting)
    if after.page is Page.ITEM and before.page is Page.RESULTS:
        item = after.item
        fits = (*mind.fitting, item) if _fits(after) and item not in mind.fitting else mind.fitting
        return mind._replace(seen=tuple(dict.fromkeys((*mind.seen, item))), fitting=fits, read=())
    if after.page not in (Page.ITEM, Page.RESULTS, Page.INDEX):
        return mind._replace(read=(*mind.read, after.page.value))
    return mind


def habit(persona: Persona, shop: ShopState, mind: HumanMemory) -> HumanAct:
    """Return a persona's usual act here: a pure function, so that its description is enough to predict it."""
    buttons = shop.world.layout.buttons
    match shop.page:
        case Page.INDEX:
            return _search(persona, shop.world, mind)
        case Page.RESULTS:
            return _at_results(persona, shop, mind)
        case Page.ITEM:
            return _at_item(persona, shop, mind)
        case _:
            return HumanAct("click", buttons.previous)


def _search(persona: Persona, world: ShopWorld, mind: HumanMemory) -> HumanAct:
    goal = world.goal
    short = persona.query == "short" and mind.searches == 0
    words = goal.nouns if short else (*goal.attributes, *goal.nouns)
    return HumanAct("type_and_submit", SEARCH, " ".join(words))


def _at_results(persona: Persona, shop: ShopState, mind: HumanMemory) -> HumanAct:
    visible = shop.visible
    named = dict(zip(visible, labels(shop, visible), strict=True))
    decided = len(mind.fitting) >= persona.compares or len(mind.seen) >= persona.patience
    if decided and not mind.fitting:
        return HumanAct("terminate")
    if decided:
        best = min(mind.fitting, key=lambda item: shop.world.catalogue.product(item).price)
        return HumanAct("click", named[best]) if best in named else HumanAct("terminate")
    for item in sorted(visible, key=lambda item: _rank(persona, shop, item)):
        if item not in mind.seen and _promising(shop, item):
            return HumanAct("click", named[item])
    if persona.query == "short" and mind.searches == 1:
        return _search(persona, shop.world, mind)
    in_reach = [item for item in mind.fitting if item in named]
    return HumanAct("click", named[in_reach[0]]) if in_reach else HumanAct("terminate")


def _at_item(persona: Persona, shop: ShopState, mind: HumanMemory) -> HumanAct:
    buttons, here = shop.world.layout.buttons, clickables(shop)
    if not _fits(shop):
        return HumanAct("click", buttons.previous)
    unread = [page for page in persona.reads if page in here and page not in mind.read]
    decided = len(mind.fitting) >= persona.compares or len(mind.seen) >= persona.patience
    returned = mind.seen[-1:] != (shop.item,)
    if unread and not returned:
        return HumanAct("click", unread[0])
    if not decided and not returned and _more(shop, mind):
        return HumanAct("click", buttons.previous)
    cheapest = min(mind.fitting, key=lambda item: shop.world.catalogue.product(item).price)
    if decided and shop.item != cheapest and cheapest in shop._replace(page=Page.RESULTS).visible:
        return HumanAct("click", buttons.previous)
    if persona.options == "wanted":
        names = {pair: name for name, pair in shop.product.option_names.items()}
        for pair in choose(shop.product, shop.world.goal).items():
            if pair not in shop.chosen:
                return HumanAct("click", names[pair])
    return HumanAct("click", buttons.buy)


def _rank(persona: Persona, shop: ShopState, item: int) -> tuple[float, int]:
    product, place = shop.world.catalogue.product(item), list(shop.visible).index(item)
    match persona.order:
        case "listed":
            return 0.0, place
        case "cheapest":
            return product.price, place
        case "title":
            return -float(_titled(shop.world, product.title)), place


def _promising(shop: ShopState, item: int) -> bool:
    """Say whether a result looks as if it were the kind of thing that is wanted."""
    words = shop.world.catalogue.product(item).title.lower().split()
    return any(noun in words for noun in shop.world.goal.nouns)


def _fits(shop: ShopState) -> bool:
    """Say whether the open product's title and price leave nothing to be wished for, as far as they tell."""
    product, goal = shop.product, shop.world.goal
    told = _titled(shop.world, product.title)
    return product.price <= goal.price_cap and told >= max(1, len(goal.attributes) - 1)


def _titled(world: ShopWorld, title: str) -> int:
    return sum(attribute in title.lower() for attribute in world.goal.attributes)


def _more(shop: ShopState, mind: HumanMemory) -> bool:
    """Say whether the results page has another promising product."""
    back = shop._replace(page=Page.RESULTS, item=-1, chosen=())
    return any(item not in mind.seen and _promising(back, item) for item in back.visible)


def _whim(shop: ShopState, rng: Random, usual: HumanAct) -> HumanAct:
    """Anything else that can be clicked here, but no purchase."""
    buttons = shop.world.layout.buttons
    offered = [name for name in clickables(shop) if name not in (buttons.buy, usual.name)]
    return HumanAct("click", rng.choice(offered)) if offered else usual
