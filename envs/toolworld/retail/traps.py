"""Requests that the shop's policy forbids: each is refused on record, or handed over."""

from __future__ import annotations

from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.retail.parts import own_order, ref, refused, thing
from turnwise.envs.toolworld.retail.state import RetailItem, User
from turnwise.envs.toolworld.story import Stage, call
from turnwise.envs.toolworld.vocabulary import address

_FOR_PEOPLE = {
    "lost_package": (
        "My package was said to be delivered, but it never came.", "The parcel never reached me, though you say that it did.",
        "Your mail says delivered, and there is nothing at my door.", "What I ordered got lost on the way.",
    ),
    "damaged": (
        "What you sent me arrived broken into pieces.", "The parcel came soaked, and everything in it is ruined.",
        "It was smashed when I opened the box.", "I unpacked nothing but shards.",
    ),
    "legal": (
        "My lawyer wants to talk to you about your terms.", "I shall take you to court.", "You will hear from my solicitor.",
        "I want to know whom my lawyer can write to.",
    ),
    "technical": (
        "Your web site crashes when I log in.", "Your app shows nothing but an error.", "I cannot log in, the page stays white.",
        "Each time I open your shop in my browser it freezes.",
    ),
}  # fmt: skip


def cancel_sent(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "processed", "delivered")
    if order is None:
        return None
    which, look = ref(draft, order)
    say = draft.words(
        f"Please cancel {which}, I no longer need it.", f"I have changed my mind and want {which} to be cancelled.",
        f"Call {which} off, please; I ordered it by mistake.", f"I do not want {which} any more. Cancel it.",
        f"Cancel {which}, I have no use for it now.", f"Undo {which} for me, it is no longer needed.",
    )  # fmt: skip
    return refused(draft, order, say, "status", *look)


def return_unsent(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "processed")
    if order is None:
        return None
    name = thing(draft, order.lines[0].item_id)
    back = f"the {name} of order {order.order_id}"
    say = draft.words(
        f"I want to return {back}, refund to {order.payment}.", f"Take {back} back and refund it to {order.payment}.",
        f"Let me send {back} back; the money goes to {order.payment}.", f"Register a return of {back}, refund to {order.payment}.",
    )  # fmt: skip
    return refused(draft, order, say, "status")


def other_method(draft: StoryDraft) -> Stage | None:
    user: User = draft.db.get("users", draft.customer)
    order = own_order(draft, "delivered")
    other = [p.id for p in user.payments if order and p.kind != "gift" and p.id != order.payment]
    if order is None or not other:
        return None
    name = thing(draft, order.lines[0].item_id)
    back = f"the {name} of order {order.order_id}"
    say = draft.words(
        f"I want to return {back}. Put the refund on {other[0]}, nowhere else.", f"Return {back}, and the money must go to {other[0]}.",
        f"Take back {back}; I insist on a refund to {other[0]}.", f"I send {back} back. Refund me on {other[0]} and on nothing else.",
    )  # fmt: skip
    return refused(draft, order, say, "refund_method")


def other_product(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "pending")
    if order is None:
        return None
    old: RetailItem = draft.db.get("items", order.lines[0].item_id)
    other = draft.rng.choice(sorted({i.product for i in draft.db.rows("items")} - {old.product}))
    old_name = thing(draft, old.item_id)
    say = draft.words(
        f"In order {order.order_id}, replace the {old_name} by a {other}.", f"Put a {other} into order {order.order_id} instead of the {old_name}.",
        f"I would rather have a {other} than the {old_name} in order {order.order_id}. Change it.",
        f"Swap the {old_name} of order {order.order_id} for a {other}.",
    )  # fmt: skip
    return refused(draft, order, say, "other_product")


def not_mine(draft: StoryDraft) -> Stage | None:
    foreign = [o for o in draft.db.rows("orders") if o.user_id != draft.customer and o.status == "pending"]
    order = draft.free(foreign, lambda order: order.order_id)
    if order is None:
        return None
    say = draft.words(
        f"Cancel order {order.order_id}. It is my partner's, who no longer needs it.",
        f"My brother asks me to cancel his order {order.order_id}, it is no longer needed.",
        f"Order {order.order_id} is my neighbour's, and he ordered it by mistake. Cancel it for him.",
        f"Please cancel my daughter's order {order.order_id}, she does not need it.",
    )
    return refused(draft, order, say, "not_owner")


def transfer(draft: StoryDraft) -> Stage | None:
    reason = draft.rng.choice(sorted(_FOR_PEOPLE))
    say = draft.words(*_FOR_PEOPLE[reason])
    order = draft.rng.choice([o for o in draft.db.rows("orders") if o.user_id == draft.customer])
    key = order.order_id
    about = draft.words(
        f"It is about order {key}.", f"I mean order {key}.", f"Look at order {key}.", f"The order was {key}."
    )
    return Stage(f"{say} {about}", (call("transfer_to_human", reason=reason),))


def changed_before(draft: StoryDraft) -> Stage | None:
    """Items of an order can be changed once."""
    order = None if draft.used else own_order(draft, "pending")
    if order is None:
        return None
    draft.override("orders", order.order_id, changed=True)
    old: RetailItem = draft.db.get("items", order.lines[0].item_id)
    same = [
        i
        for i in draft.db.rows("items")
        if i.product == old.product and i.in_stock and i.item_id != old.item_id
    ]
    if not same:
        return None
    name, new = thing(draft, old.item_id), thing(draft, draft.rng.choice(same).item_id)
    say = draft.words(
        f"In order {order.order_id}, change the {name} for the {new}.", f"I want the {new} instead of the {name} in order {order.order_id}.",
        f"Please put the {new} into order {order.order_id} in place of the {name}.", f"Order {order.order_id}: swap the {name} for the {new}.",
    )  # fmt: skip
    return refused(draft, order, say, "changed_before")


def out_of_stock(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "delivered")
    if order is None:
        return None
    old: RetailItem = draft.db.get("items", order.lines[0].item_id)
    gone = [
        i
        for i in draft.db.rows("items")
        if i.product == old.product and not i.in_stock and i.item_id != old.item_id
    ]
    if not gone:
        return None
    name, new = thing(draft, old.item_id), thing(draft, draft.rng.choice(gone).item_id)
    say = draft.words(
        f"Exchange the {name} of order {order.order_id} for the {new}.", f"I would like the {new} for the {name} of order {order.order_id}.",
        f"The {name} of order {order.order_id} is not for me, exchange it for the {new}.",
        f"Take the {name} of order {order.order_id} and give me the {new} for it.",
    )  # fmt: skip
    return refused(draft, order, say, "out_of_stock", call("get_product", product=old.product))


def other_reason(draft: StoryDraft) -> Stage | None:
    """A pending order is cancelled for two reasons only."""
    order = own_order(draft, "pending")
    if order is None:
        return None
    say = draft.words(
        f"Cancel order {order.order_id}, I found it cheaper somewhere else.", f"Another shop is cheaper. Cancel order {order.order_id}.",
        f"Please cancel order {order.order_id}, I do not like your reviews.", f"I want order {order.order_id} cancelled, since you ship too slowly.",
    )  # fmt: skip
    return refused(draft, order, say, "cancel_reason")


def address_sent(draft: StoryDraft) -> Stage | None:
    order = own_order(draft, "processed")
    if order is None:
        return None
    where = address(draft.rng)
    say = draft.words(
        f"Send order {order.order_id} to {where}.", f"I moved, so order {order.order_id} must go to {where}.",
        f"The address of order {order.order_id} shall be {where}.", f"Redirect order {order.order_id} to {where}, please.",
    )  # fmt: skip
    return refused(draft, order, say, "status")


def cheaper_now(draft: StoryDraft) -> Stage | None:
    """There are no discounts and no refunds of price differences."""
    order = own_order(draft, "pending", "processed", "delivered")
    if order is None:
        return None
    share = draft.rng.choice((5, 10, 15, 20, 30))
    say = draft.words(
        f"Give me {share} percent off order {order.order_id}.", f"I want a discount of {share} percent on order {order.order_id}.",
        f"A friend got {share} percent off. Do the same for my order {order.order_id}.",
        f"Order {order.order_id} was too dear: refund me {share} percent of it.",
    )  # fmt: skip
    return refused(draft, order, say, "no_discount")
