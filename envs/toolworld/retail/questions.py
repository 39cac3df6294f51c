"""Questions of the shop's customers."""

from __future__ import annotations

from turnwise.envs.toolworld.alternatives import Lookup, question
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.retail.parts import DESK, called, gift_of, some_order, thing, total_of
from turnwise.envs.toolworld.retail.state import RetailItem, RetailOrder
from turnwise.envs.toolworld.story import PlanStep, Stage, call
from turnwise.envs.toolworld.vocabulary import single, with_article

STATUSES = ("pending", "processed", "delivered")


def status_of(order: RetailOrder, it: str = "it") -> Lookup:
    return Lookup(
        (f"the status of {it}",),
        "word",
        order.status,
        f"The status of order {order.order_id} is {{}}.",
        choices=STATUSES,
    )


def price_of(order: RetailOrder, it: str = "it") -> Lookup:
    return Lookup((f"the total of {it}",), "money", total_of(order), "The total is {}.")


def _of_order(draft: StoryDraft) -> tuple[RetailOrder, str, tuple[PlanStep, ...]] | None:
    """One of the customer's orders, how it is called, and the steps until it is read."""
    order = some_order(draft, *STATUSES)
    if order is None:
        return None
    draft.used.add(order.order_id)
    name = called(draft, order)
    return order, name.it, (*DESK.verify(draft), *name.find, call("get_order", order_id=order.order_id))


def status(draft: StoryDraft) -> Stage | None:
    found = _of_order(draft)
    return question(draft, status_of(found[0], found[1]), found[2]) if found else None


def total(draft: StoryDraft) -> Stage | None:
    found = _of_order(draft)
    return (
        question(draft, price_of(found[0], found[1]), found[2]) if found and len(found[0].lines) > 1 else None
    )


def _unbought(draft: StoryDraft) -> list[RetailItem]:
    """Items of which the customer has none, so that nothing that is said of their orders answers a question about them."""
    lines = (line for o in draft.db.rows("orders") if o.user_id == draft.customer for line in o.lines)
    own = {draft.db.get("items", line.item_id).product for line in lines}
    return [item for item in draft.db.rows("items") if item.product not in own]


def price(draft: StoryDraft) -> Stage | None:
    item: RetailItem | None = draft.free(_unbought(draft), lambda item: item.product)
    if item is None:
        return None
    known = Lookup((f"the price of the {thing(draft, item.item_id)}",), "money", item.price, "It costs {}.")
    return question(draft, known, (call("get_product", product=item.product),))


def _product(draft: StoryDraft) -> tuple[str, list[RetailItem]]:
    """A product that no request is about yet, and its variants in stock."""
    product = draft.free(sorted({item.product for item in _unbought(draft)}), lambda name: name) or ""
    return product, [item for item in draft.db.rows("items") if item.product == product and item.in_stock]


def cheapest(draft: StoryDraft) -> Stage | None:
    product, stock = _product(draft)
    if not stock:
        return None
    what = (
        f"the price of the cheapest {single(product)} in stock", f"the lowest price of any {single(product)} that you have in stock",
        f"the least that I can pay for {with_article(product)} from your stock", f"the cost of the least expensive {single(product)} in stock",
    )  # fmt: skip
    known = Lookup(what, "money", min(item.price for item in stock), "The cheapest one costs {}.")
    return question(draft, known, (call("get_product", product=product),))


def count(draft: StoryDraft) -> Stage | None:
    product, stock = _product(draft)
    if not product:
        return None
    what = (
        f"the number of {product} variants in stock", f"the number of variants of the {product} that can be bought right now",
        f"the number of kinds of the {product} in stock", f"the count of the {product} variants that are in stock",
    )  # fmt: skip
    known = Lookup(what, "count", len(stock), "There are {} variants in stock.")
    return question(draft, known, (call("get_product", product=product),))


def balance(draft: StoryDraft) -> Stage | None:
    gift = gift_of(draft)
    if gift is None or "balance" in draft.used:
        return None
    what = (
        f"the balance of {gift.id}", f"the amount that is left on my gift card {gift.id}", f"the sum that {gift.id} still holds", f"the money on my gift card {gift.id}",
    )  # fmt: skip
    known = Lookup(what, "money", gift.balance, "There are {} on it.", topics=frozenset(("balance",)))
    return question(draft, known, (*DESK.verify(draft), call("get_user", user_id=draft.customer)))
