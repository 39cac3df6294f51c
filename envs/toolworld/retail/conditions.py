"""Wishes of the shop's customers that depend on what the agent finds out: one thing or another."""

from __future__ import annotations

from turnwise.envs.toolworld.alternatives import (
    Lookup,
    WishPart,
    compared,
    decided,
    left_alone,
    limit_for,
    part,
)
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import Operation, WishedChange, accept, wish_for
from turnwise.envs.toolworld.retail.operations import (
    ADDRESS,
    CANCEL,
    CHANGE,
    EXCHANGE,
    PAYMENT,
    REMOVE,
    RETURN,
    WRAP,
    cheapest_swap,
    giving_back,
    removal,
    swapping,
)
from turnwise.envs.toolworld.retail.parts import (
    DESK,
    called,
    gift_of,
    me,
    some_order,
    thing,
    total_of,
    variants,
)
from turnwise.envs.toolworld.retail.questions import price_of, status_of
from turnwise.envs.toolworld.retail.state import OrderLine, RetailItem, RetailOrder
from turnwise.envs.toolworld.story import PlanStep, Stage, call, once
from turnwise.envs.toolworld.vocabulary import with_article


def _read(draft: StoryDraft, order: RetailOrder, *more: PlanStep, find: tuple[PlanStep, ...] = ()) -> tuple[PlanStep, ...]:  # fmt: skip
    """List what is read before a condition can be decided."""
    return once((*DESK.verify(draft), *find, call("get_order", order_id=order.order_id), *more))


def _whole(draft: StoryDraft, order: RetailOrder) -> WishPart:
    """All of an order goes back; whether it can is for the condition to say."""
    wish = giving_back(RETURN, draft, order, order.lines, order.payment)
    return part(draft, wish.named(what="all of it"))


def _here(draft: StoryDraft, operation: Operation, order: RetailOrder, rule: str = "", it: str = "it") -> WishedChange | None:  # fmt: skip
    """A wish about an order that was named already."""
    wish = wish_for(draft, operation, rule, [order])
    return None if wish is None else wish.named(it=it)


def unsent(draft: StoryDraft) -> Stage | None:
    """Change an order while that is possible, else hear how far it is, or give it back."""
    holds = draft.rng.random() < 0.5
    order = some_order(draft, *(["pending"] if holds else ["processed", "delivered"]))
    wish = (
        _here(draft, draft.rng.choice((CANCEL, WRAP, ADDRESS)), order, "" if holds else "status")
        if order
        else None
    )
    if order is None or wish is None:
        return None
    name = called(draft, order)
    condition = draft.words(
        f"{name.it} has not been sent yet", f"{name.it} is still waiting to be sent", f"{name.it} has not left your house so far",
        f"{name.it} is not on its way yet", f"so far you have not sent off {name.it}", f"{name.it} is still with you",
    )  # fmt: skip
    other = left_alone(draft, status_of(order))
    return decided(
        draft, _read(draft, order, find=name.find), condition, (part(draft, wish), other), holds=holds
    )


def unsent_or_back(draft: StoryDraft) -> Stage | None:
    """Get rid of an order, whether it came already or not."""
    came = draft.rng.random() < 0.5
    order = some_order(draft, "delivered" if came else "pending")
    wish = _here(draft, CANCEL, order, "status" if came else "") if order else None
    if order is None or wish is None or not wish.arguments["reason"]:
        return None
    name = called(draft, order)
    condition = draft.words(
        f"{name.it} was delivered already", f"your system says that {name.it} is delivered", f"{name.it} has the status delivered",
        f"according to your books {name.it} was delivered to me", f"you find that {name.it} is listed as delivered",
        f"{name.it} is a delivered one by now",
    )  # fmt: skip
    parts = (_whole(draft, order), part(draft, wish))
    return decided(draft, _read(draft, order, find=name.find), condition, parts, holds=came)


def _otherwise(draft: StoryDraft, order: RetailOrder, line: OrderLine, what: str) -> WishPart | None:
    """Draw what is done with a thing that is not swapped: it goes back, out of its order, or with the order."""
    if order.status == "delivered":
        wish = giving_back(RETURN, draft, order, [line], order.payment)
        return part(draft, wish.named(what=what)) if accept(draft, wish) else None
    if len(order.lines) > 1 and draft.rng.random() < 0.6:
        wish = removal(REMOVE, draft, order, line)
        return (
            part(draft, wish.named(things="the one that I chose", it="that order"))
            if accept(draft, wish)
            else None
        )
    wish = _here(draft, CANCEL, order, it="the whole order")
    return part(draft, wish) if wish else None


def within(draft: StoryDraft, operation: Operation) -> Stage | None:
    """The cheapest variant of another colour, if it is not too dear."""
    order = some_order(draft, "pending" if operation is CHANGE else "delivered")
    line = draft.rng.choice(order.lines) if order else None
    if order is None or line is None:
        return None
    wish = cheapest_swap(operation, draft, order, line, least=200)
    if wish is None or not accept(draft, wish):
        return None
    new: RetailItem = draft.db.get("items", wish.arguments["new_item_id"])
    name = called(draft, order, [line])
    mine = f"the {thing(draft, line.item_id)} in {name.it}"
    best = f"your cheapest {new.colour} {new.product} in stock"
    difference = (
        f"the step in price from {mine} to {best}", f"the price difference between {mine} and {best}", f"the sum that I pay on top for {best} in place of {mine}",
        f"the extra cost of {best}, compared with {mine},",
    )  # fmt: skip
    known = Lookup(difference, "money", wish.amount, "The price difference is {}.")
    condition = compared(draft, known, above=False)
    what = "the one that I have" if operation is EXCHANGE else "the one in that order"
    first = part(draft, wish.named(what=what, new="it"))
    other: WishPart | None = left_alone(draft, known, "the price difference")
    if draft.rng.random() < 0.6:
        other = _otherwise(draft, order, line, what)
    look = _read(draft, order, *wish.reads, find=name.find)
    return decided(draft, look, condition.say, (first, other), holds=condition.holds) if other else None


def in_stock(draft: StoryDraft) -> Stage | None:
    """Another variant if there is one, else without the thing."""
    order, holds = some_order(draft, "pending", "delivered"), draft.rng.random() < 0.5
    if order is None:
        return None
    line = draft.rng.choice(order.lines)
    able = [item for item in variants(draft, draft.db.get("items", line.item_id)) if item.in_stock is holds]
    operation = CHANGE if order.status == "pending" else EXCHANGE
    wish = swapping(operation, draft, order, line, draft.rng.choice(able)) if able else None
    if wish is None or not accept(draft, wish, "" if holds else "out_of_stock"):
        return None
    other = _otherwise(draft, order, line, "the one that I have")
    if other is None:
        return None
    new = wish.fill["new_thing"].removeprefix("the ")
    condition = draft.words(
        f"you have the {new} in stock", f"your stock includes the {new}", f"there is {with_article(new)} in stock",
        f"I can have the {new} from your stock", f"your stock still holds the {new}", f"you can supply the {new} from stock",
    )  # fmt: skip
    mine = f"the {thing(draft, line.item_id)} in order {order.order_id}"
    first = part(draft, wish.named(what=mine, new="it"))
    return decided(draft, _read(draft, order, *wish.reads), condition, (first, other), holds=holds)


def gift_pays(draft: StoryDraft) -> Stage | None:
    """Pay with the gift card if it holds enough."""
    order, gift, fresh = some_order(draft, "pending"), gift_of(draft), not draft.used
    if order is None or gift is None or order.payment == gift.id:
        return None
    total, holds = total_of(order), draft.rng.random() < 0.5
    if fresh:  # few gift cards hold so much of their own
        more = draft.rng.randrange(0, 6000, 50) if holds else -draft.rng.randrange(50, 6000, 50)
        full = gift._replace(balance=max(0, total + more))
        draft.override(
            "users", draft.customer, payments=tuple(full if p == gift else p for p in me(draft).payments)
        )
        gift = full
    draft.used.add(order.order_id)
    name = called(draft, order)
    condition = draft.words(
        f"my gift card {gift.id} holds enough for {name.it}", f"the balance of {gift.id} covers the whole price of {name.it}",
        f"there is enough money on {gift.id} for all of {name.it}", f"{gift.id} has at least as much on it as the price of {name.it}",
        f"what is left on {gift.id} suffices for {name.it}", f"the price of {name.it} is no higher than what {gift.id} still has",
    )  # fmt: skip
    words = {"it": "it", "order": f"order {order.order_id}", "payment_id": gift.id}
    pay = part(
        draft,
        WishedChange(PAYMENT, order.order_id, {"order_id": order.order_id, "payment_id": gift.id}, words),
    )
    known = Lookup(
        ("the sum that is missing on it",), "money", abs(total - gift.balance), "{} are missing on it."
    )
    other = left_alone(draft, known)
    if draft.rng.random() < 0.4:
        wish = _here(draft, CANCEL, order, it="the order")
        if wish is None:
            return None
        other = part(draft, wish)
    look = _read(draft, order, call("get_user", user_id=draft.customer), find=name.find)
    return decided(draft, look, condition, (pay, other), holds=gift.balance >= total)


def budget(draft: StoryDraft) -> Stage | None:
    """An order that costs too much loses its dearest thing, else it becomes a present or stays as it is."""
    order = some_order(draft, "pending")
    if order is None or len(order.lines) < 2:
        return None
    dearest, second = sorted(order.lines, key=lambda line: -line.price)[:2]
    wish = removal(REMOVE, draft, order, dearest)
    if dearest.price == second.price or not accept(draft, wish):
        return None
    name = called(draft, order)
    known, holds = price_of(order), draft.rng.random() < 0.5
    limit = known.shown(limit_for(draft, total_of(order), within=not holds))
    condition = draft.words(
        f"{name.it} has a total above {limit}", f"I pay over {limit} for the whole of {name.it}", f"the total of {name.it} is above {limit}",
        f"the sum of all things in {name.it} is over {limit}", f"over {limit} was charged for all of {name.it}", f"{name.it} is dearer than {limit} altogether",
    )  # fmt: skip
    first = part(draft, wish.named(things="what costs most in it", it="it"))
    wrap = _here(draft, WRAP, order) if draft.rng.random() < 0.5 else None
    other = part(draft, wrap) if wrap else left_alone(draft, known)
    return decided(draft, _read(draft, order, find=name.find), condition, (first, other), holds=holds)
