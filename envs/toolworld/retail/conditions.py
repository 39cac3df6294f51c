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
from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.operations import Operation, accepted, wanted, wish_for
from turnwise.envs.toolworld.retail import operations as changes
from turnwise.envs.toolworld.retail import parts
from turnwise.envs.toolworld.retail.questions import price_of, status_of
from turnwise.envs.toolworld.retail.state import OrderLine, RetailItem, RetailOrder
from turnwise.envs.toolworld.story import Stage, call
from turnwise.envs.toolworld.vocabulary import with_article


def unsent(draft: StoryDraft) -> Stage:
    """Change an order while that is possible, else hear how far it is, or give it back."""
    holds = draft.rng.random() < 0.5
    order = fitting(parts.some_order(draft, *(["pending"] if holds else ["processed", "delivered"])))
    wish = wanted(
        draft,
        draft.rng.choice((changes.CANCEL, changes.WRAP, changes.ADDRESS)),
        order,
        "" if holds else "status",
    )
    name = parts.looked_at(draft, order)
    condition, other = draft.say("is unsent", it=name.it), left_alone(draft, status_of(order))
    return decided(draft, name.find, condition, (part(draft, wish.named(it="it")), other), holds=holds)


def unsent_or_back(draft: StoryDraft) -> Stage:
    """Get rid of an order, whether it came already or not."""
    came = draft.rng.random() < 0.5
    order = fitting(parts.some_order(draft, "delivered" if came else "pending"))
    wish = wanted(draft, changes.CANCEL, order, "status" if came else "").named(it="it")
    fitting(wish.arguments["reason"])
    name = parts.looked_at(draft, order)
    condition = draft.say("was delivered", it=name.it)
    # whether all of it can go back is for the condition to say
    back = changes.giving_back(changes.RETURN, draft, order, order.lines, order.payment).named(
        what="all of it"
    )
    return decided(draft, name.find, condition, (part(draft, back), part(draft, wish)), holds=came)


def _otherwise(draft: StoryDraft, order: RetailOrder, line: OrderLine, what: str) -> WishPart:
    """Draw what is done with a thing that is not swapped: it goes back, out of its order, or with the order."""
    if order.status == "delivered":
        back = changes.giving_back(changes.RETURN, draft, order, [line], order.payment)
        return part(draft, accepted(draft, back).named(what=what))
    if len(order.lines) > 1 and draft.rng.random() < 0.6:
        gone = accepted(draft, changes.removal(changes.REMOVE, draft, order, line))
        return part(draft, gone.named(things="the one that I chose", it="that order"))
    return part(draft, wanted(draft, changes.CANCEL, order).named(it="the whole order"))


def within(draft: StoryDraft, operation: Operation) -> Stage:
    """The cheapest variant of another colour, if it is not too dear."""
    order = fitting(parts.some_order(draft, "pending" if operation is changes.CHANGE else "delivered"))
    line = draft.rng.choice(order.lines)
    wish = accepted(draft, changes.cheapest_swap(operation, draft, order, line, least=200))
    new: RetailItem = draft.db.get("items", wish.arguments["new_item_id"])
    name = parts.looked_at(draft, order, [line])
    mine = f"the {parts.thing(draft, line.item_id)} in {name.it}"
    best = f"your cheapest {new.colour} {new.product} in stock"
    difference = draft.ways("price difference", mine=mine, best=best)
    known = Lookup(difference, "money", wish.amount, "The price difference is {}.")
    condition = compared(draft, known, above=False)
    what = "the one that I have" if operation is changes.EXCHANGE else "the one in that order"
    first = part(draft, wish.named(what=what, new="it"))
    other = left_alone(draft, known, "the price difference")
    if draft.rng.random() < 0.6:
        other = _otherwise(draft, order, line, what)
    return decided(draft, (*name.find, *wish.reads), condition.say, (first, other), holds=condition.holds)


def in_stock(draft: StoryDraft) -> Stage:
    """Another variant if there is one, else without the thing."""
    found, holds = parts.some_order(draft, "pending", "delivered"), draft.rng.random() < 0.5
    order = fitting(found)
    line = draft.rng.choice(order.lines)
    able = [
        item for item in parts.variants(draft, draft.db.get("items", line.item_id)) if item.in_stock is holds
    ]
    operation = changes.CHANGE if order.status == "pending" else changes.EXCHANGE
    swap = changes.swapping(operation, draft, order, line, draft.rng.choice(fitting(able)))
    wish = accepted(draft, swap, "" if holds else "out_of_stock")
    other = _otherwise(draft, order, line, "the one that I have")
    new = wish.fill["new_thing"].removeprefix("the ")
    condition = draft.say("is in stock", new=new, a_new=with_article(new))
    mine = f"the {parts.thing(draft, line.item_id)} in order {order.order_id}"
    first = part(draft, wish.named(what=mine, new="it"))
    look = (*parts.DESK.verify(draft), call("get_order", order_id=order.order_id), *wish.reads)
    return decided(draft, look, condition, (first, other), holds=holds)


def gift_pays(draft: StoryDraft) -> Stage:
    """Pay with the gift card if it holds enough."""
    order, gift, fresh = (
        fitting(parts.some_order(draft, "pending")),
        fitting(parts.gift_of(draft)),
        not draft.used,
    )
    fitting(order.payment != gift.id)
    total, holds = order.total, draft.rng.random() < 0.5
    if fresh:  # few gift cards hold so much of their own
        more = draft.rng.randrange(0, 6000, 50) if holds else -draft.rng.randrange(50, 6000, 50)
        full = gift._replace(balance=max(0, total + more))
        payments = tuple(full if payment == gift else payment for payment in parts.me(draft).payments)
        draft.override("users", draft.customer, payments=payments)
        gift = full
    draft.used.add(order.order_id)
    name = parts.looked_at(draft, order)
    condition = draft.say("gift card holds enough", gift=gift.id, it=name.it)
    pay = part(draft, changes.plain(changes.PAYMENT, order, payment_id=gift.id).named(it="it"))
    known = Lookup(
        ("the sum that is missing on it",), "money", abs(total - gift.balance), "{} are missing on it."
    )
    other = left_alone(draft, known)
    if draft.rng.random() < 0.4:
        other = part(draft, wanted(draft, changes.CANCEL, order).named(it="the order"))
    look = (*name.find, parts.account(draft))
    return decided(draft, look, condition, (pay, other), holds=gift.balance >= total)


def budget(draft: StoryDraft) -> Stage:
    """An order that costs too much loses its dearest thing, else it becomes a present or stays as it is."""
    order = fitting(parts.some_order(draft, "pending"))
    fitting(len(order.lines) > 1)
    dearest, second = sorted(order.lines, key=lambda line: -line.price)[:2]
    gone = changes.removal(changes.REMOVE, draft, order, dearest)
    wish = accepted(draft, gone if dearest.price > second.price else None)
    name = parts.looked_at(draft, order)
    known, holds = price_of(order), draft.rng.random() < 0.5
    limit = known.shown(limit_for(draft, order.total, within=not holds))
    condition = draft.say("total is above", it=name.it, limit=limit)
    first = part(draft, wish.named(things="what costs most in it", it="it"))
    wrap = wish_for(draft, changes.WRAP, among=[order]) if draft.rng.random() < 0.5 else None
    other = part(draft, wrap.named(it="it")) if wrap else left_alone(draft, known)
    return decided(draft, name.find, condition, (first, other), holds=holds)
