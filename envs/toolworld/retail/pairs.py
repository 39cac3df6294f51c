"""What the shop's customers want done in two ways at once: with one order, or with two."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from turnwise.envs.toolworld.alternatives import WishPart, joined
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.retail import wishes
from turnwise.envs.toolworld.retail.parts import (
    line_of,
    other_colour,
    own_order,
    ref,
    thing,
    verify,
)
from turnwise.envs.toolworld.retail.state import RetailOrder, User
from turnwise.envs.toolworld.story import PlanStep, Stage, call
from turnwise.envs.toolworld.vocabulary import address


class ChangePart(NamedTuple):
    """A part of a wish, and what must be read for it beside its order."""

    part: WishPart
    reads: tuple[PlanStep, ...] = ()


def _swapped(draft: StoryDraft, order: RetailOrder, which: str) -> ChangePart | None:
    """The cheapest variant in another colour for a thing of an order."""
    line = line_of(draft, order, which)
    new = other_colour(draft, line, least=-line.price) if line and not order.changed else None
    if line is None or new is None:
        return None
    what, wish = (
        f"the {thing(draft, line.item_id)} in {which}",
        f"your cheapest {new.colour} {new.product} in stock",
    )
    part = wishes.swap(draft, what, wish, order, line, new, draft.rng.choice(_cards(draft)))
    return ChangePart(part, (call("get_product", product=new.product),))


def _removed(draft: StoryDraft, order: RetailOrder, which: str) -> ChangePart | None:
    line = line_of(draft, order, which) if len(order.lines) > 1 and not order.changed else None
    if line is None:
        return None
    return ChangePart(wishes.remove(draft, f"the {thing(draft, line.item_id)}", which, order, line))


def _wrapped(draft: StoryDraft, order: RetailOrder, which: str) -> ChangePart | None:
    return None if order.wrapped else ChangePart(wishes.wrap(draft, which, order))


def _sent(draft: StoryDraft, order: RetailOrder, which: str) -> ChangePart | None:
    return ChangePart(wishes.send(draft, which, address(draft.rng), order))


def _paid(draft: StoryDraft, order: RetailOrder, which: str) -> ChangePart | None:
    able = [payment for payment in _cards(draft) if payment != order.payment]
    return ChangePart(wishes.pay(draft, which, draft.rng.choice(able), order)) if able else None


def _cards(draft: StoryDraft) -> list[str]:
    """What can pay any sum, whatever else is paid with it."""
    user: User = draft.db.get("users", draft.customer)
    return [payment.id for payment in user.payments if payment.kind != "gift"]


def _cancelled(draft: StoryDraft, order: RetailOrder, which: str) -> ChangePart | None:
    return ChangePart(wishes.cancel(draft, which, order))


def _returned(draft: StoryDraft, order: RetailOrder, which: str) -> ChangePart | None:
    line = draft.rng.choice(order.lines)
    what = f"the {thing(draft, line.item_id)} of {which}"
    return ChangePart(wishes.give_back(draft, what, order.payment, order, [line], order.payment))


Makes = Callable[[StoryDraft, RetailOrder, str], ChangePart | None]
_WHOLE: tuple[Makes, ...] = (_wrapped, _sent, _paid)
_OF_STATUS: dict[str, tuple[Makes, ...]] = {
    "pending": (_cancelled, _swapped, _removed, *_WHOLE), "delivered": (_returned, _swapped),
}  # fmt: skip


def _one_order(draft: StoryDraft, first: tuple[Makes, ...], rest: str) -> Stage | None:
    """One of the first changes, and another of the order as a whole, which leaves what the first is about alone."""
    order = own_order(draft, "pending")
    if order is None:
        return None
    which, look = ref(draft, order)
    make = draft.rng.choice(first)
    one = make(draft, order, which)
    left = order
    if one and make is _removed:  # what is wrapped then is less
        gone = one.part.steps[1].arguments["item_id"]
        left = order._replace(lines=tuple(line for line in order.lines if line.item_id != gone))
    other = draft.rng.choice([made for made in _WHOLE if made is not make])(draft, left, rest)
    if one is None or other is None:
        return None
    look = (*verify(draft), *look, call("get_order", order_id=order.order_id), *one.reads)
    return joined(draft, look, one.part, other.part)


def remove_and(draft: StoryDraft) -> Stage | None:
    """One thing less, and the rest wrapped, sent elsewhere or paid otherwise."""
    return _one_order(draft, (_removed,), "the rest of that order")


def change_and(draft: StoryDraft) -> Stage | None:
    """Another variant, and the whole order wrapped or sent elsewhere."""
    return _one_order(draft, (_swapped,), "that whole order")


def two_for_one(draft: StoryDraft) -> Stage | None:
    """Two things that are done with an order as a whole."""
    return _one_order(draft, _WHOLE, "the same order")


def _two_orders(draft: StoryDraft, first: str, second: str) -> Stage | None:
    one, other = own_order(draft, first), own_order(draft, second)
    if one is None or other is None:
        return None
    pairs = [(order, draft.rng.choice(_OF_STATUS[order.status])) for order in (one, other)]
    pairs.sort(key=lambda pair: pair[1] is not _removed)  # so that no price is said to be for what is removed
    made = [make(draft, order, f"order {order.order_id}") for order, make in pairs]
    if made[0] is None or made[1] is None:
        return None
    reads = tuple(call("get_order", order_id=order.order_id) for order, _ in pairs)
    look = (*verify(draft), *reads, *made[0].reads, *made[1].reads)
    return joined(draft, look, made[0].part, made[1].part)


def two_unsent(draft: StoryDraft) -> Stage | None:
    """Something for one order that was not sent, and something for another."""
    return _two_orders(draft, "pending", "pending")


def two_delivered(draft: StoryDraft) -> Stage | None:
    """Returns or exchanges of two orders."""
    return _two_orders(draft, "delivered", "delivered")


def old_and_new(draft: StoryDraft) -> Stage | None:
    """Something for an order that was delivered, and something for one that was not sent."""
    statuses = ["delivered", "pending"]
    draft.rng.shuffle(statuses)
    return _two_orders(draft, *statuses)
