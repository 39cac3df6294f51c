"""What the shop's customers want to know."""

from __future__ import annotations

from collections.abc import Iterable

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.retail.parts import DESK, called, gift_of, some_order, thing, total_of
from turnwise.envs.toolworld.retail.state import RetailItem, RetailOrder
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell
from turnwise.envs.toolworld.vocabulary import single, with_article

STATUSES = ("pending", "processed", "delivered")


def _asked(
    draft: StoryDraft, ways: Iterable[str], fact: Fact, report: str, again: str, *look: PlanStep
) -> Stage:
    return Stage(draft.words(*ways), (*look, tell(report)), (fact,), again=again)


def _of_order(draft: StoryDraft) -> tuple[RetailOrder, str, tuple[PlanStep, ...]] | None:
    """One of the customer's orders, how it is called, and the steps until it is read."""
    order = some_order(draft, *STATUSES)
    if order is None:
        return None
    draft.used.add(order.order_id)
    name = called(draft, order)
    return order, name.it, (*DESK.verify(draft), *name.find, call("get_order", order_id=order.order_id))


def status(draft: StoryDraft) -> Stage | None:
    if (found := _of_order(draft)) is None:
        return None
    order, it, look = found
    ways = (
        f"What is the status of {it}?", f"How far is {it}? Tell me its status.", f"I would like to know the status of {it}.",
        f"Please look {it} up: what status does it have?",
    )  # fmt: skip
    report = f"The status of order {order.order_id} is {order.status}."
    return _asked(
        draft, ways, Fact("word", order.status, STATUSES), report, f"What is the status of {it}?", *look
    )


def total(draft: StoryDraft) -> Stage | None:
    if (found := _of_order(draft)) is None or len(found[0].lines) < 2:
        return None
    order, it, look = found
    ways = (
        f"How much did I pay for {it} in all?", f"What was the total of {it}?", f"Tell me what {it} came to altogether.", f"I need to know the total of {it}.",
    )  # fmt: skip
    amount = total_of(order)
    return _asked(draft, ways, Fact("money", str(amount)), f"The total is {dollars(amount)}.", f"What was the total of {it}?", *look)  # fmt: skip


def price(draft: StoryDraft) -> Stage | None:
    item: RetailItem | None = draft.free(draft.db.rows("items"), lambda item: item.product)
    if item is None:
        return None
    name = thing(draft, item.item_id)
    ways = (
        f"What is the price of the {name}?", f"How much do you want for the {name}?", f"Tell me the price of the {name}, please.", f"What do you ask for the {name}?",
    )  # fmt: skip
    look = call("get_product", product=item.product)
    return _asked(draft, ways, Fact("money", str(item.price)), f"It costs {dollars(item.price)}.", f"What is the price of the {name}?", look)  # fmt: skip


def _product(draft: StoryDraft) -> tuple[str, list[RetailItem]]:
    """A product that no request is about yet, and its variants in stock."""
    product = draft.free(sorted({item.product for item in draft.db.rows("items")}), lambda name: name) or ""
    return product, [item for item in draft.db.rows("items") if item.product == product and item.in_stock]


def cheapest(draft: StoryDraft) -> Stage | None:
    product, stock = _product(draft)
    if not stock:
        return None
    least, one = min(item.price for item in stock), with_article(product)
    ways = (
        f"What does your cheapest {single(product)} in stock cost?", f"How little can I pay for {one} that you have in stock?",
        f"Tell me the lowest price of {one} that you have in stock.", f"I want to spend as little as possible on {one}: what does the cheapest in stock cost?",
    )  # fmt: skip
    again, look = f"What does the cheapest {single(product)} cost?", call("get_product", product=product)
    return _asked(
        draft, ways, Fact("money", str(least)), f"The cheapest one costs {dollars(least)}.", again, look
    )


def count(draft: StoryDraft) -> Stage | None:
    product, stock = _product(draft)
    if not product:
        return None
    ways = (
        f"How many variants of the {product} do you have in stock?",
        f"I wonder how many different {product} variants can be bought right now.",
        f"Could you count the {product} variants that are in stock for me?",
        f"In how many variants can I have the {product} at the moment?",
        f"Of the {product}, how many kinds are there in stock?",
        f"How big is your choice of the {product}: how many variants are in stock?",
    )
    again, look = f"How many variants of the {product} are in stock?", call("get_product", product=product)
    return _asked(
        draft, ways, Fact("count", str(len(stock))), f"There are {len(stock)} variants in stock.", again, look
    )


def balance(draft: StoryDraft) -> Stage | None:
    gift = gift_of(draft)
    if gift is None or "balance" in draft.used:
        return None
    draft.used.add("balance")
    ways = (
        f"How much is left on my gift card {gift.id}?", f"What is the balance of {gift.id}?", f"Please check what {gift.id} still holds.",
        f"I forgot how much money is on {gift.id}. Tell me.",
    )  # fmt: skip
    look = (*DESK.verify(draft), call("get_user", user_id=draft.customer))
    return _asked(draft, ways, Fact("money", str(gift.balance)), f"There are {dollars(gift.balance)} on it.", f"How much is on {gift.id}?", *look)  # fmt: skip
