"""Questions of the shop's customers."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.alternatives import Lookup, question
from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.retail.operations import ANY
from turnwise.envs.toolworld.retail.parts import DESK, account, gift_of, looked_at, mine, some_order, thing
from turnwise.envs.toolworld.retail.state import RetailItem, RetailOrder
from turnwise.envs.toolworld.story import Stage, call
from turnwise.envs.toolworld.vocabulary import single, with_article


def status_of(order: RetailOrder, it: str = "it") -> Lookup:
    report = f"The status of order {order.order_id} is {{}}."
    return Lookup((f"the status of {it}",), "word", order.status, report, choices=ANY)


def price_of(order: RetailOrder, it: str = "it") -> Lookup:
    return Lookup((f"the total of {it}",), "money", order.total, "The total is {}.")


def of_order(draft: StoryDraft, known: Callable[[RetailOrder, str], Lookup], things: int = 1) -> Stage:
    """Something about an order with that many things in it at least."""
    order = fitting(some_order(draft, *ANY))
    draft.used.add(order.order_id)
    name = looked_at(draft, order)
    fitting(len(order.lines) >= things)
    return question(draft, known(order, name.it), name.find)


def _unbought(draft: StoryDraft) -> list[RetailItem]:
    """Items of which the customer has none, so that nothing that is said of their orders answers a question about them."""
    own = {draft.db.get("items", line.item_id).product for order in mine(draft) for line in order.lines}
    return [item for item in draft.db.rows("items") if item.product not in own]


def _of_product(draft: StoryDraft, known: Lookup, product: str) -> Stage:
    return question(draft, known, (call("get_product", product=product),))


def price(draft: StoryDraft) -> Stage:
    item: RetailItem = fitting(draft.free(_unbought(draft), lambda item: item.product))
    what = f"the price of the {thing(draft, item.item_id)}"
    return _of_product(draft, Lookup((what,), "money", item.price, "It costs {}."), item.product)


def _product(draft: StoryDraft) -> str:
    """A product that no request is about yet."""
    return fitting(draft.free(sorted({item.product for item in _unbought(draft)}), lambda name: name))


def _in_stock(draft: StoryDraft, product: str) -> list[RetailItem]:
    return [item for item in draft.db.rows("items") if item.product == product and item.in_stock]


def cheapest(draft: StoryDraft) -> Stage:
    product = _product(draft)
    price = min(item.price for item in fitting(_in_stock(draft, product)))
    what = draft.ways("price of cheapest", one=single(product), a_one=with_article(product))
    return _of_product(draft, Lookup(what, "money", price, "The cheapest one costs {}."), product)


def count(draft: StoryDraft) -> Stage:
    product = _product(draft)
    what, number = draft.ways("number of variants", product=product), len(_in_stock(draft, product))
    return _of_product(draft, Lookup(what, "count", number, "There are {} variants in stock."), product)


def balance(draft: StoryDraft) -> Stage:
    fitting("balance" not in draft.used)
    gift = fitting(gift_of(draft))
    what, topics = draft.ways("balance", gift=gift.id), frozenset(("balance",))
    known = Lookup(what, "money", gift.balance, "There are {} on it.", topics=topics)
    return question(draft, known, (*DESK.verify(draft), account(draft)))
