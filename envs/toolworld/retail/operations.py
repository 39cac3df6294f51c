"""Changes that the shop can make for its customers: how each is asked for, offered and reported, and when it
is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import Operation, Patch, WishedChange, about, owned, wished
from turnwise.envs.toolworld.retail.actions import WRAP_PRICE
from turnwise.envs.toolworld.retail.parts import (
    DESK,
    called,
    cheapest_of,
    me,
    orders,
    settles,
    thing,
    total_of,
    variants,
    why,
)
from turnwise.envs.toolworld.retail.state import OrderLine, RetailItem, RetailOrder, User
from turnwise.envs.toolworld.story import ask, call
from turnwise.envs.toolworld.vocabulary import address, listed
from turnwise.tasks.core import Json

SECTIONS = {
    "not_owner": "1.2", "status": "3.1", "changed_before": "4.4", "cancel_reason": "4.1", "other_product": "4.2",
    "out_of_stock": "4.2, 5.2", "refund_method": "5.1", "no_discount": "6.5",
}  # fmt: skip
"""Rule → where the policy has it, in the order in which the policy takes them."""
REFUND = (
    "How much do I get back?", "What will be refunded?", "What amount comes back to me?", "How much money will I see again?",
)  # fmt: skip
WRAPPING = (
    "What does it cost?", "What is the price of that?", "How much is that?", "What do I pay for that?",
)  # fmt: skip
UNSENT, ANY = ("pending", "processed"), ("pending", "processed", "delivered")


# --- the policy's rules ------------------------------------------------------------------------------


_of_order = partial(about, "orders", "order_id")
_is_own = owned("orders", "order_id", "user_id")


def _is_same_product(db: Database, customer: str | None, arguments: Mapping[str, Any]) -> bool:
    old, new = db.find("items", arguments["item_id"]), db.find("items", arguments["new_item_id"])
    return old is None or new is None or old.product == new.product


def _is_in_stock(db: Database, customer: str | None, arguments: Mapping[str, Any]) -> bool:
    new: RetailItem | None = db.find("items", arguments["new_item_id"])
    return new is None or new.in_stock


def _may_get_refund(db: Database, order: RetailOrder, arguments: Mapping[str, Any]) -> bool:
    user: User = db.get("users", order.user_id)
    gifts = {payment.id for payment in user.payments if payment.kind == "gift"}
    return arguments["refund_to"] in {order.payment, *gifts}


_PENDING = _of_order(lambda db, order, given: order.status == "pending")
_DELIVERED = _of_order(lambda db, order, given: order.status == "delivered")
_UNCHANGED = _of_order(lambda db, order, given: not order.changed)
_VARIANT = {"other_product": _is_same_product, "out_of_stock": _is_in_stock}


def _changed(draft: StoryDraft, order: RetailOrder) -> Sequence[Patch]:
    return [("orders", order.order_id, {"changed": True})]


# --- wishes ------------------------------------------------------------------------------------------


def _about(
    operation: Operation, draft: StoryDraft, order: RetailOrder, arguments: Mapping[str, Json], *,
    lines: Sequence[OrderLine] = (), fill: Mapping[str, str] = {}, amount: int = 0,
) -> WishedChange:  # fmt: skip
    """A wish about an order; ``lines`` are the things in it that it is about."""
    name, given = called(draft, order, lines), {"order_id": order.order_id, **arguments}
    things = listed([thing(draft, line.item_id) for line in lines]) if lines else ""
    words = {"order": f"order {order.order_id}", "things": things, "what": f"{things} in {name.it}", **fill}
    return wished(operation, order.order_id, given, name, fill=words, amount=amount)


def _cancel(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    reason = why(draft)
    wish = _about(operation, draft, order, {"reason": reason.reason}, amount=total_of(order))
    return wish._replace(
        asks=(ask("Why do you want to cancel it?", "reason"),),
        said=reason.said if draft.rng.random() < 0.6 else "",
        knows={"reason": reason.said},
    )


def _send(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    return _about(operation, draft, order, {"address": address(draft.rng)})


def _pay(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange | None:
    others = [payment.id for payment in me(draft).payments if payment.id != order.payment]
    return _about(operation, draft, order, {"payment_id": draft.rng.choice(others)}) if others else None


def _wrap(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    return _about(operation, draft, order, {}, amount=WRAP_PRICE * len(order.lines))


def _remove(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    return removal(operation, draft, order, draft.rng.choice(order.lines))


def removal(operation: Operation, draft: StoryDraft, order: RetailOrder, line: OrderLine) -> WishedChange:
    return _about(operation, draft, order, {"item_id": line.item_id}, lines=[line], amount=line.price)


def _give_back(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    lines = draft.rng.sample(order.lines, draft.rng.randint(1, len(order.lines)))
    methods = (
        [payment.id for payment in me(draft).payments] if order.user_id == draft.customer else [order.payment]
    )
    return giving_back(operation, draft, order, lines, draft.rng.choice(methods))


def giving_back(
    operation: Operation, draft: StoryDraft, order: RetailOrder, lines: Sequence[OrderLine], refund_to: str
) -> WishedChange:  # fmt: skip
    items: list[Json] = sorted(line.item_id for line in lines)
    given: Mapping[str, Json] = {"item_ids": items, "refund_to": refund_to}
    return _about(operation, draft, order, given, lines=lines, amount=sum(line.price for line in lines))


def _refund_elsewhere(draft: StoryDraft, wish: WishedChange) -> WishedChange | None:
    others = [payment.id for payment in me(draft).payments if payment.id != wish.arguments["refund_to"]]
    return wish.given(refund_to=draft.rng.choice(others)) if others else None


def _swap(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange | None:
    """Another variant by its name, or the cheapest of a colour; now and then another product."""
    line = draft.rng.choice(order.lines)
    if draft.rng.random() < 0.4:
        return cheapest_swap(operation, draft, order, line)
    old: RetailItem = draft.db.get("items", line.item_id)
    others = [item for item in draft.db.rows("items") if item.product != old.product]
    able = others if draft.rng.random() < 0.15 else variants(draft, old)
    return swapping(operation, draft, order, line, draft.rng.choice(able))


def cheapest_swap(
    operation: Operation, draft: StoryDraft, order: RetailOrder, line: OrderLine, *, least: int | None = None
) -> WishedChange | None:  # fmt: skip
    """A swap for the cheapest variant of another colour; one that costs ``least`` cents more, where that is given."""
    old: RetailItem = draft.db.get("items", line.item_id)
    able = [item for item in cheapest_of(variants(draft, old)).values() if item.colour != old.colour]
    found = [item for item in able if least is None or item.price >= line.price + least]
    return swapping(operation, draft, order, line, draft.rng.choice(found), cheapest=True) if found else None


def swapping(
    operation: Operation, draft: StoryDraft, order: RetailOrder, line: OrderLine, new: RetailItem, *, cheapest: bool = False
) -> WishedChange | None:  # fmt: skip
    """A thing of an order is swapped for a variant, which is called by its name or as the cheapest of its colour."""
    amount = new.price - line.price
    paid = settles(draft, amount)
    if paid is None:
        return None
    name = thing(draft, new.item_id)
    fill = {
        "new_thing": f"the {name}", "new": f"the cheapest {new.colour} {new.product} in stock" if cheapest else f"the {name}",
        "verb": operation.name, "done": f"{operation.name}d",
    }  # fmt: skip
    given: Mapping[str, Json] = {
        "item_id": line.item_id, "new_item_id": new.item_id, "payment_id": paid.payment.id,
    }  # fmt: skip
    wish = _about(operation, draft, order, given, lines=[line], fill=fill, amount=amount)
    said = draft.words(
        f"Any price difference goes to {paid.payment.id}.", f"Settle the difference with {paid.payment.id}.",
        f"Use {paid.payment.id} for what it costs more or less.", f"Put the difference in price on {paid.payment.id}.",
    )  # fmt: skip
    return wish._replace(
        reads=(call("get_product", product=new.product),),
        asks=(ask("Which payment method shall the difference go to?", "payment"),),
        # an offer to use a card, to which they say yes, is right as well where they have not named a gift card
        said=said if paid.payment.kind == "gift" or draft.rng.random() < 0.6 else "",
        knows={"payment": paid.said},
    )


def _other_variant(draft: StoryDraft, wish: WishedChange) -> WishedChange | None:
    """The same thing swapped for another variant, which is called in the same way."""
    order: RetailOrder = draft.db.get("orders", wish.subject)
    line = next(line for line in order.lines if line.item_id == wish.arguments["item_id"])
    first: RetailItem = draft.db.get("items", wish.arguments["new_item_id"])
    cheapest = wish.fill["new"] != wish.fill["new_thing"]
    able = variants(draft, draft.db.get("items", line.item_id))
    others = [item for item in (cheapest_of(able).values() if cheapest else able) if item != first]
    found = (
        swapping(wish.operation, draft, order, line, draft.rng.choice(others), cheapest=cheapest)
        if others
        else None
    )
    if found is None or found.arguments["payment_id"] != wish.arguments["payment_id"]:
        return None
    return found._replace(find=wish.find, asks=wish.asks, said=wish.said)


def _other_payment(draft: StoryDraft, wish: WishedChange) -> WishedChange | None:
    others = [payment.id for payment in me(draft).payments if payment.id != wish.arguments["payment_id"]]
    return wish.given(payment_id=draft.rng.choice(others)) if others else None


def _move(operation: Operation, draft: StoryDraft, user: User) -> WishedChange:
    new = address(draft.rng)
    return WishedChange(operation, "home", {"user_id": user.user_id, "address": new}, {"address": new})


def _discount(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    return _about(operation, draft, order, {}, fill={"share": str(draft.rng.choice((5, 10, 15, 20, 30)))})


# --- the changes -------------------------------------------------------------------------------------

CANCEL = Operation(
    "cancel", "cancel_order",
    ("cancel {it}", "call off {it}", "void {it}", "withdraw {it}", "have {it} cancelled", "annul {it}", "scrap {it}", "undo {it}"),
    "cancel {order} and refund {money}", "{order} is cancelled; {money} will be refunded.",
    {"not_owner": _is_own, "status": _PENDING, "cancel_reason": lambda db, customer, given: bool(given["reason"])},
    orders(*ANY), _cancel, DESK, REFUND, "How much money do I get back?", asked_for=("cancel_reason",),
)  # fmt: skip
_SWAPS = (
    "{verb} {what} for {new}", "swap {what} for {new}", "replace {what} by {new}", "trade {what} for {new}",
    "replace {what} with {new}", "change {what} to {new}", "substitute {what} with {new}",
)  # fmt: skip
_ON = (
    ", with the price difference on {payment_id}", " and settle the difference with {payment_id}", ", paying the difference with {payment_id}",
    ", and use {payment_id} for the difference", ", with the difference going to {payment_id}", " and let {payment_id} carry the difference",
)  # fmt: skip
_RATHER = (
    "Wait, actually I want {new}.",
    "Hm, rather {new}.",
    "I have thought again: {new}, please.",
    "No, make it {new}.",
)
_SWAP_OFFER = "{verb} {things} in {order} for {new_thing}, with a price difference of {money} on {payment_id}"
CHANGE = Operation(
    "change", "change_item", _SWAPS, _SWAP_OFFER, "the item of {order} is changed; the price difference is {money}.",
    {"not_owner": _is_own, "status": _PENDING, "changed_before": _UNCHANGED, **_VARIANT},
    orders(*UNSENT), _swap, DESK, beside=_ON, read_for=("other_product", "out_of_stock"), second=_RATHER, rethink=_other_variant, prepare={"changed_before": _changed},
)  # fmt: skip
EXCHANGE = Operation(
    "exchange", "exchange_item", _SWAPS, _SWAP_OFFER, "the item of {order} is exchanged; the price difference is {money}.",
    {"not_owner": _is_own, "status": _DELIVERED, **_VARIANT},
    orders("processed", "delivered"), _swap, DESK, beside=_ON, read_for=("other_product", "out_of_stock"), second=_RATHER, rethink=_other_variant,
)  # fmt: skip
ADDRESS = Operation(
    "address", "change_address",
    ("send {it} to {address}", "have {it} delivered to {address}", "ship {it} to {address}", "change the address of {it} to {address}",
     "redirect {it} to {address}", "let {it} be sent to {address}"),
    "send {order} to the address {address}", "the address of {order} is changed.",
    {"not_owner": _is_own, "status": _PENDING}, orders(*UNSENT), _send, DESK, shares=("address",),
    second=("No, sorry. Send it to {address}.", "Wait, I was wrong: it is {address}.", "Ah, better to {address}.", "Actually, make that {address}."),
    rethink=lambda draft, wish: wish.given(address=address(draft.rng)),
)  # fmt: skip
PAYMENT = Operation(
    "payment", "change_payment",
    ("change the payment of {it} to {payment_id}", "use {payment_id} as the payment for {it}", "switch the payment method of {it} to {payment_id}",
     "set the payment of {it} to {payment_id}", "update the payment method of {it} to {payment_id}", "replace the payment method of {it} by {payment_id}"),
    "change the payment of {order} to {payment_id}", "{order} is paid with {payment_id} now.",
    {"not_owner": _is_own, "status": _PENDING}, orders(*UNSENT), _pay, DESK,
    second=("No, wait: use {payment_id}.", "Hm, rather {payment_id}.", "Actually, {payment_id} is better.", "No, make it {payment_id}."), rethink=_other_payment,
)  # fmt: skip
REMOVE = Operation(
    "remove", "remove_item",
    ("take {things} out of {it}", "remove {things} from {it}", "leave {things} out of {it}", "drop {things} from {it}", "strike {things} from {it}", "delete {things} from {it}"),
    "remove {things} from {order} and refund {money}", "{things} is removed from {order}; {money} will be refunded.",
    {"not_owner": _is_own, "status": _PENDING, "changed_before": _UNCHANGED},
    orders(*UNSENT), _remove, DESK, REFUND, "How much is refunded?", prepare={"changed_before": _changed},
)  # fmt: skip
WRAP = Operation(
    "wrap", "wrap_order",
    ("wrap {it} as a gift", "have {it} gift-wrapped", "put {it} into gift wrapping", "let {it} be wrapped as a present", "order gift wrapping for {it}", "request gift wrapping for {it}"),
    "wrap {order} as a gift for {money}", "{order} is wrapped as a gift; it costs {money}.",
    {"not_owner": _is_own, "status": _PENDING}, orders(*UNSENT), _wrap, DESK, WRAPPING, "What does the wrapping cost?",
)  # fmt: skip
RETURN = Operation(
    "return", "return_items",
    ("take back {what}, with the refund to {refund_to}", "return {what} and refund it to {refund_to}", "register a return of {what}, refunded to {refund_to}",
     "allow a return of {what} for a refund to {refund_to}", "accept a return of {what} and refund it to {refund_to}", "process the return of {what} with a refund to {refund_to}"),
    "return {things} of {order} and refund {money} to {refund_to}", "the return of {order} is registered; {money} will be refunded to {refund_to}.",
    {"not_owner": _is_own, "status": _DELIVERED, "refund_method": _of_order(_may_get_refund)},
    orders(*ANY), _give_back, DESK, REFUND, "How much will I get back?",
    second=("Wait, refund it to {refund_to} instead.", "Hm, rather refund it to {refund_to}.", "I have thought again: the refund goes to {refund_to}.", "No, I want the refund on {refund_to}."),
    rethink=_refund_elsewhere,
)  # fmt: skip
HOME = Operation(
    "home", "change_user_address",
    ("change the address of my account to {address}, and leave my orders as they are", "save {address} as the address of my account, but not for my orders",
     "update my account to {address}, for future orders only", "set the address of my profile to {address}, and nothing about my orders",
     "put {address} into my account as my address, without touching my orders", "correct the address in my account to {address}, not in my orders"),
    "change the address of your account to {address}", "the address of your account is changed.",
    {}, lambda draft, own: [me(draft)] if own else [], _move, DESK,
)  # fmt: skip
DISCOUNT = Operation(
    "discount", "",
    ("give me {share} percent off {it}", "refund me {share} percent of what I paid for {it}", "let me have {it} {share} percent cheaper", "take {share} percent off the price of {it}"),
    "", "", {"not_owner": _is_own, "no_discount": lambda db, customer, given: False}, orders(*ANY), _discount, DESK,
)  # fmt: skip
OPERATIONS = (CANCEL, CHANGE, EXCHANGE, ADDRESS, PAYMENT, REMOVE, WRAP, RETURN, HOME, DISCOUNT)
