"""What the shop's customers want done by what the agent finds out: one thing or another."""

from __future__ import annotations

from turnwise.envs.toolworld.alternatives import decided
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.retail import wishes
from turnwise.envs.toolworld.retail.parts import (
    gift_of,
    line_of,
    other_colour,
    own_order,
    payer,
    ref,
    thing,
    total_of,
    variants,
    verify,
)
from turnwise.envs.toolworld.retail.questions import STATUSES
from turnwise.envs.toolworld.retail.state import RetailItem, RetailOrder, User
from turnwise.envs.toolworld.story import PlanStep, Stage, call
from turnwise.envs.toolworld.vocabulary import address, with_article


def _unsent(draft: StoryDraft, which: str) -> str:
    return draft.words(
        f"{which} has not been sent yet",
        f"{which} is still waiting to be sent",
        f"{which} has not left your house so far",
        f"{which} is not on its way yet",
        f"so far you have not sent off {which}",
        f"{which} is still with you",
    )


def _reading(draft: StoryDraft, order: RetailOrder) -> tuple[str, tuple[PlanStep, ...]]:
    """How an order is named, and the steps until it is read."""
    which, look = ref(draft, order)
    return which, (*verify(draft), *look, call("get_order", order_id=order.order_id))


def unsent_or_status(draft: StoryDraft) -> Stage | None:
    """Change it while that is possible, else tell how far it is."""
    holds = draft.rng.random() < 0.5
    order = own_order(draft, *(["pending"] if holds else ["processed", "delivered"]))
    if order is None or order.wrapped:
        return None
    which, look = _reading(draft, order)
    do = draft.rng.choice((
        lambda: wishes.cancel(draft, "it", order),
        lambda: wishes.wrap(draft, "it", order),
        lambda: wishes.send(draft, "it", address(draft.rng), order),
    ))()  # fmt: skip
    fact = Fact("word", order.status, STATUSES)
    leave = wishes.leave(draft, "its status", fact, f"Its status is {order.status}, so nothing was changed.")
    return decided(draft, look, _unsent(draft, which), (do, leave), holds=holds)


def unsent_or_return(draft: StoryDraft) -> Stage | None:
    """Get rid of an order, whether it came already or not."""
    order = own_order(draft, "pending", "delivered")
    if order is None:
        return None
    which, look = _reading(draft, order)
    first = wishes.cancel(draft, "it", order)
    back = wishes.give_back(draft, "all of it", order.payment, order, order.lines, order.payment)
    holds = order.status == "pending"
    if draft.rng.random() < 0.5:
        return decided(draft, look, _unsent(draft, which), (first, back), holds=holds)
    came = draft.words(
        f"{which} was delivered already",
        f"your system says that {which} is delivered",
        f"{which} has the status delivered",
        f"according to your books {which} was delivered to me",
        f"you find that {which} is listed as delivered",
        f"{which} is a delivered one by now",
    )
    return decided(draft, look, came, (back, first), holds=not holds)


def _limit(draft: StoryDraft, amount: int, *, within: bool) -> int:
    """Whole dollars, in cents: at least the amount, or less than it."""
    steps = draft.rng.randint(0, 6)
    if within:
        return (-(-amount // 100) + steps) * 100
    return max(1, (amount - 1) // 100 - steps) * 100


def _within(draft: StoryDraft, status: str) -> Stage | None:
    order = own_order(draft, status)
    if order is None or order.changed:
        return None
    which, look = _reading(draft, order)
    line = line_of(draft, order, which)
    new = other_colour(draft, line, least=200) if line else None
    if line is None or new is None:
        return None
    more, holds = new.price - line.price, draft.rng.random() < 0.5
    limit = dollars(_limit(draft, more, within=holds))
    name, wish = thing(draft, line.item_id), f"your cheapest {new.colour} {new.product} in stock"
    condition = draft.words(
        f"{wish} costs at most {limit} beyond what I paid for the {name} in {which}",
        f"the step from the {name} in {which} to {wish} is {limit} at the most",
        f"I pay at most {limit} on top for {wish} in place of the {name} in {which}",
        f"the price of {wish} is at most {limit} above what I paid for the {name} in {which}",
        f"{wish} is dearer than the {name} in {which} by {limit} or less",
        f"for {wish} I pay {limit} extra at the most, compared with the {name} in {which}",
    )
    old = "the one that I have" if status == "delivered" else "the one in that order"
    swap = wishes.swap(draft, old, "it", order, line, new, payer(draft, more))
    look = (*look, call("get_product", product=new.product))
    fact = Fact("money", str(more))
    other = wishes.leave(
        draft, "the price difference", fact, f"The price difference is {dollars(more)}, so nothing was changed."
    )  # fmt: skip
    if draft.rng.random() < 0.5 and status == "delivered":
        other = wishes.give_back(draft, old, order.payment, order, [line], order.payment)
    elif draft.rng.random() < 0.7 and status == "pending":
        able = [lambda: wishes.cancel(draft, "the whole order", order)]
        if len(order.lines) > 1:
            able.append(lambda: wishes.remove(draft, "the one that I chose", "that order", order, line))
        other = draft.rng.choice(able)()
    return decided(draft, look, condition, (swap, other), holds=holds)


def change_within(draft: StoryDraft) -> Stage | None:
    """Another variant in a pending order, if that is not too dear."""
    return _within(draft, "pending")


def exchange_within(draft: StoryDraft) -> Stage | None:
    """Another variant of what was delivered, if that is not too dear."""
    return _within(draft, "delivered")


def in_stock_or(draft: StoryDraft) -> Stage | None:
    """Another variant if there is one, else without the thing."""
    order = own_order(draft, "pending", "delivered")
    if order is None or order.changed:
        return None
    which = f"order {order.order_id}"
    line, holds = line_of(draft, order, which), draft.rng.random() < 0.5
    if line is None:
        return None
    old: RetailItem = draft.db.get("items", line.item_id)
    wanted = [item for item in variants(draft, old) if item.in_stock is holds]
    if not wanted:
        return None
    new = draft.rng.choice(wanted)
    name, wish = thing(draft, old.item_id), thing(draft, new.item_id)
    condition = draft.words(
        f"you have the {wish} in stock",
        f"your stock includes the {wish}",
        f"there is {with_article(wish)} in stock",
        f"I can have the {wish} from your stock",
        f"your stock still holds the {wish}",
        f"you can supply the {wish} from stock",
    )
    swap = wishes.swap(
        draft, f"the {name} in {which}", "it", order, line, new, payer(draft, new.price - line.price)
    )  # fmt: skip
    if order.status == "delivered":
        other = wishes.give_back(draft, "the one that I have", order.payment, order, [line], order.payment)
    elif len(order.lines) > 1 and draft.rng.random() < 0.6:
        other = wishes.remove(draft, "the one that I chose", "that order", order, line)
    else:
        other = wishes.cancel(draft, "that order", order)
    look = (
        *verify(draft), call("get_order", order_id=order.order_id), call("get_product", product=old.product),
    )  # fmt: skip
    return decided(draft, look, condition, (swap, other), holds=holds)


def gift_pays(draft: StoryDraft) -> Stage | None:
    """Pay with the gift card if it holds enough."""
    fresh = not draft.used
    order, gift = own_order(draft, "pending"), gift_of(draft)
    if order is None or gift is None or order.payment == gift.id:
        return None
    total, holds = total_of(order), draft.rng.random() < 0.5
    if fresh:  # few gift cards hold so much of their own
        user: User = draft.db.get("users", draft.customer)
        balance = (
            total + draft.rng.randrange(0, 6000, 50)
            if holds
            else max(0, total - draft.rng.randrange(50, 6000, 50))
        )
        payments = tuple(p._replace(balance=balance) if p == gift else p for p in user.payments)
        draft.override("users", draft.customer, payments=payments)
        gift = gift._replace(balance=balance)
    which, look = _reading(draft, order)
    if all(step.name != "get_user" for step in look):
        look = (*look, call("get_user", user_id=draft.customer))
    condition = draft.words(
        f"my gift card {gift.id} holds enough for {which}",
        f"the balance of {gift.id} covers the whole price of {which}",
        f"there is enough money on {gift.id} for all of {which}",
        f"{gift.id} has at least as much on it as the price of {which}",
        f"what is left on {gift.id} suffices for {which}",
        f"the price of {which} is no higher than what {gift.id} still has",
    )
    pay = wishes.pay(draft, "it", gift.id, order)
    other = wishes.cancel(draft, "the order", order)
    if draft.rng.random() < 0.6:
        missing = abs(total - gift.balance)
        fact = Fact("money", str(missing))
        other = wishes.leave(
            draft, "how much is missing on it", fact, f"{dollars(missing)} are missing on it."
        )
        other = other._replace(again="How much is missing on the card?")
    return decided(draft, look, condition, (pay, other), holds=gift.balance >= total)


def budget(draft: StoryDraft) -> Stage | None:
    """An order that costs too much loses its dearest thing, else it becomes a present or stays as it is."""
    order = own_order(draft, "pending")
    if order is None or order.changed or order.wrapped or len(order.lines) < 2:
        return None
    dearest, second = sorted(order.lines, key=lambda line: -line.price)[:2]
    if dearest.price == second.price:
        return None
    total, holds = total_of(order), draft.rng.random() < 0.5
    limit = dollars(_limit(draft, total, within=not holds))
    which, look = _reading(draft, order)
    condition = draft.words(
        f"{which} has a total above {limit}",
        f"I pay over {limit} for the whole of {which}",
        f"the total of {which} is above {limit}",
        f"the sum of all things in {which} is over {limit}",
        f"over {limit} was charged for all of {which}",
        f"{which} is dearer than {limit} altogether",
    )
    remove = wishes.remove(draft, "what costs most in it", "it", order, dearest)
    if draft.rng.random() < 0.5:
        other = wishes.wrap(draft, "it", order)
    else:
        report = f"Its total is {dollars(total)}, so nothing was changed."
        other = wishes.leave(draft, "its exact total", Fact("money", str(total)), report)
    return decided(draft, look, condition, (remove, other), holds=holds)
