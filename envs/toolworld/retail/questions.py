"""What the shop's customers want to know."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.retail.parts import own_order, ref, verify
from turnwise.envs.toolworld.retail.state import RetailItem, User
from turnwise.envs.toolworld.story import Stage, call, tell
from turnwise.envs.toolworld.vocabulary import single, with_article

STATUSES = ("pending", "processed", "delivered")


def status(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, *STATUSES)
    if order is None:
        return None
    which, look = ref(draft, order)
    say = draft.words(
        f"What is the status of {which}?", f"How far is {which}? Tell me its status.", f"I would like to know the status of {which}.",
        f"Please look {which} up: what status does it have?",
    )  # fmt: skip
    plan = (
        *verify(draft), *look, call("get_order", order_id=order.order_id),
        tell(f"The status of order {order.order_id} is {order.status}."),
    )  # fmt: skip
    return Stage(say, plan, (Fact("word", order.status, STATUSES),), again=f"What is the status of {which}?")


def total(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, *STATUSES)
    if order is None or len(order.lines) < 2:
        return None
    which, look = ref(draft, order)
    amount = sum(line.price for line in order.lines)
    say = draft.words(
        f"How much did I pay for {which} in all?", f"What was the total of {which}?", f"Tell me what {which} came to altogether.",
        f"I need to know the total of {which}.",
    )  # fmt: skip
    plan = (
        *verify(draft),
        *look,
        call("get_order", order_id=order.order_id),
        tell(f"The total is {dollars(amount)}."),
    )
    return Stage(say, plan, (Fact("money", str(amount)),), again=f"What was the total of {which}?")


def price(draft: StoryDraft) -> Stage | None:
    item: RetailItem | None = draft.free(draft.db.rows("items"), lambda item: item.product)
    if item is None:
        return None
    name = f"{item.colour} {item.size} {item.product}"
    say = draft.words(
        f"What is the price of the {name}?", f"How much do you want for the {name}?", f"Tell me the price of the {name}, please.", f"What do you ask for the {name}?",
    )  # fmt: skip
    plan = (call("get_product", product=item.product), tell(f"It costs {dollars(item.price)}."))
    return Stage(say, plan, (Fact("money", str(item.price)),), again=f"What is the price of the {name}?")


def cheapest(draft: StoryDraft) -> Stage | None:
    product = draft.free(sorted({item.product for item in draft.db.rows("items")}), lambda name: name)
    stock = [item.price for item in draft.db.rows("items") if item.product == product and item.in_stock]
    if product is None or not stock:
        return None
    least, one = min(stock), with_article(product)
    say = draft.words(
        f"What does your cheapest {single(product)} in stock cost?", f"How little can I pay for {one} that you have in stock?",
        f"Tell me the lowest price of {one} that you have in stock.", f"I want to spend as little as possible on {one}: what does the cheapest in stock cost?",
    )  # fmt: skip
    plan = (call("get_product", product=product), tell(f"The cheapest one costs {dollars(least)}."))
    return Stage(
        say, plan, (Fact("money", str(least)),), again=f"What does the cheapest {single(product)} cost?"
    )


def balance(draft: StoryDraft) -> Stage | None:
    user: User = draft.db.get("users", draft.customer)
    gift = next((p for p in user.payments if p.kind == "gift"), None)
    if gift is None or draft.used & {"balance"}:
        return None
    draft.used.add("balance")
    say = draft.words(
        f"How much is left on my gift card {gift.id}?", f"What is the balance of {gift.id}?", f"Please check what {gift.id} still holds.",
        f"I forgot how much money is on {gift.id}. Tell me.",
    )  # fmt: skip
    plan = (
        *verify(draft),
        call("get_user", user_id=draft.customer),
        tell(f"There are {dollars(gift.balance)} on it."),
    )
    return Stage(say, plan, (Fact("money", str(gift.balance)),), again=f"How much is on {gift.id}?")
