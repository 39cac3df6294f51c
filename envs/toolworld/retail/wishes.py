"""What can be done with an order, as a part of a wish: how it is asked for, what does it, what is reported."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.toolworld.alternatives import WishPart, confirmed
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.retail.actions import WRAP_PRICE
from turnwise.envs.toolworld.retail.parts import thing, total_of
from turnwise.envs.toolworld.retail.state import OrderLine, RetailItem, RetailOrder
from turnwise.envs.toolworld.story import PlanStep, call


def cancel(draft: StoryDraft, it: str, *orders: RetailOrder) -> WishPart:
    say = draft.words(
        f"cancel {it}, since I no longer need that",
        f"void {it}, because I have no use for that any more",
        f"withdraw {it}, as I do not need that any longer",
        f"drop {it}, because nothing of that is needed any more",
        f"have {it} cancelled, as that is no longer needed",
        f"undo {it}, for I have no need of that now",
    )
    refunds = " and ".join(
        f"order {order.order_id} and refund {dollars(total_of(order))}" for order in orders
    )
    writes = [call("cancel_order", order_id=order.order_id, reason="no longer needed") for order in orders]
    done = " and ".join(order.order_id for order in orders)
    return WishPart(say, confirmed(f"cancel {refunds}", *writes), f"It is cancelled: order {done}.")


def send(draft: StoryDraft, it: str, address: str, *orders: RetailOrder) -> WishPart:
    say = draft.words(
        f"send {it} to {address}",
        f"have {it} delivered to {address}",
        f"ship {it} to {address}",
        f"change the address of {it} to {address}",
        f"redirect {it} to {address}",
        f"let {it} be sent to {address}",
    )
    return WishPart(say, sending(address, *orders), "The address of the order is changed.")


def sending(address: str, *orders: RetailOrder) -> tuple[PlanStep, ...]:
    names = " and ".join(f"order {order.order_id}" for order in orders)
    writes = [call("change_address", order_id=order.order_id, address=address) for order in orders]
    return confirmed(f"send {names} to the address {address}", *writes)


def wrap(draft: StoryDraft, it: str, *orders: RetailOrder) -> WishPart:
    say = draft.words(
        f"wrap {it} as a gift",
        f"have {it} gift-wrapped",
        f"put {it} into gift wrapping",
        f"let {it} be wrapped as a present",
        f"order gift wrapping for {it}",
        f"request gift wrapping for {it}",
    )
    cost = " and ".join(
        f"order {order.order_id} as a gift for {dollars(WRAP_PRICE * len(order.lines))}" for order in orders
    )
    writes = [call("wrap_order", order_id=order.order_id) for order in orders]
    return WishPart(say, confirmed(f"wrap {cost}", *writes), "The gift wrapping is added.")


def remove(draft: StoryDraft, what: str, it: str, order: RetailOrder, line: OrderLine) -> WishPart:
    say = draft.words(
        f"take out {what} from {it}",
        f"remove {what} from {it}",
        f"leave out {what} from {it}",
        f"drop {what} from {it}",
        f"strike {what} from {it}",
        f"delete {what} from {it}",
    )
    named = f"remove the {thing(draft, line.item_id)} from order {order.order_id} and refund {dollars(line.price)}"
    steps = confirmed(named, call("remove_item", order_id=order.order_id, item_id=line.item_id))
    return WishPart(say, steps, "It is removed from the order.")


def give_back(
    draft: StoryDraft, what: str, to: str, order: RetailOrder, lines: Sequence[OrderLine], refund_to: str
) -> WishPart:
    """A return; ``to`` is how the user names what the refund goes to."""
    say = draft.words(
        f"take back {what}, with the refund to {to}",
        f"return {what} and refund it to {to}",
        f"register a return of {what}, refunded to {to}",
        f"allow a return of {what} for a refund to {to}",
        f"accept {what} back and refund it to {to}",
        f"process the return of {what} with a refund to {to}",
    )
    items = sorted(line.item_id for line in lines)
    things = " and the ".join(thing(draft, line.item_id) for line in lines)
    money = dollars(sum(line.price for line in lines))
    steps = confirmed(
        f"return the {things} of order {order.order_id} and refund {money} to {refund_to}",
        call("return_items", order_id=order.order_id, item_ids=items, refund_to=refund_to),
    )
    return WishPart(say, steps, f"The return of order {order.order_id} is registered.")


def pay(draft: StoryDraft, it: str, payment: str, order: RetailOrder) -> WishPart:
    say = draft.words(
        f"change the payment of {it} to {payment}",
        f"use {payment} as the payment for {it}",
        f"switch the payment method of {it} to {payment}",
        f"set the payment of {it} to {payment}",
        f"update the payment method of {it} to {payment}",
        f"replace the payment method of {it} by {payment}",
    )
    return WishPart(say, paying(payment, order), f"Order {order.order_id} is paid with {payment} now.")


def paying(payment: str, order: RetailOrder) -> tuple[PlanStep, ...]:
    write = call("change_payment", order_id=order.order_id, payment_id=payment)
    return confirmed(f"change the payment of order {order.order_id} to {payment}", write)


def swap(
    draft: StoryDraft, what: str, new_name: str, order: RetailOrder, line: OrderLine, new: RetailItem, payment: str
) -> WishPart:  # fmt: skip
    """Another variant: a change of what was not sent, an exchange of what was delivered."""
    verb = "change" if order.status == "pending" else "exchange"
    say = draft.words(
        f"{verb} {what} for {new_name}, with the price difference on {payment}",
        f"{verb} {what} for {new_name} and settle the difference with {payment}",
        f"{verb} {what} for {new_name}, paying the difference with {payment}",
        f"{verb} {what} for {new_name}, and use {payment} for the difference",
        f"{verb} {what} for {new_name}, with the difference going to {payment}",
        f"{verb} {what} for {new_name} and let {payment} carry the difference",
    )
    difference = dollars(new.price - line.price)
    named = f"{verb} the {thing(draft, line.item_id)} in order {order.order_id} for the {thing(draft, new.item_id)}"
    write = call(
        f"{verb}_item", order_id=order.order_id, item_id=line.item_id, new_item_id=new.item_id, payment_id=payment
    )  # fmt: skip
    steps = confirmed(f"{named}, with a price difference of {difference} on {payment}", write)
    return WishPart(say, steps, f"The item of order {order.order_id} is {verb}d.")


def leave(draft: StoryDraft, what: str, fact: Fact, report: str) -> WishPart:
    """Nothing is changed, and a value is told."""
    say = draft.words(
        f"change nothing and just tell me {what}",
        f"leave everything as it is and let me know {what}",
        f"do nothing but tell me {what}",
        f"I only want to hear {what}, and nothing is to be changed",
        f"keep things as they are and name {what}",
        f"simply say {what} and do nothing else",
    )
    return WishPart(say, (), report, (fact,), f"What is {what}?")
