"""Changes that the shop can make for its customers: how each is asked for, offered and reported, and when it
is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import (
    ChangeTable,
    Kept,
    Operation,
    WishedChange,
    about,
    never,
    owned,
    wished,
)
from turnwise.envs.toolworld.retail import parts
from turnwise.envs.toolworld.retail.actions import WRAP_PRICE
from turnwise.envs.toolworld.retail.parts import DESK, orders
from turnwise.envs.toolworld.retail.state import OrderLine, RetailItem, RetailOrder, User
from turnwise.envs.toolworld.story import ask, call
from turnwise.envs.toolworld.vocabulary import address, listed
from turnwise.tasks.core import Json

SECTIONS = {
    "not_owner": "1.2", "status": "3.1", "changed_before": "4.4", "cancel_reason": "4.1", "other_product": "4.2",
    "out_of_stock": "4.2, 5.2", "refund_method": "5.1", "no_discount": "6.5",
}  # fmt: skip
"""Rule → where the policy has it, in the order in which the policy takes them."""
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


# --- wishes ------------------------------------------------------------------------------------------


def _about(
    operation: Operation, draft: StoryDraft, order: RetailOrder, arguments: Mapping[str, Json] = {}, *,
    lines: Sequence[OrderLine] = (), fill: Mapping[str, str] = {}, amount: int = 0,
) -> WishedChange:  # fmt: skip
    """A wish about an order; ``lines`` are the things in it that it is about."""
    name, given = parts.called(draft, order, lines), {"order_id": order.order_id, **arguments}
    things = listed([parts.thing(draft, line.item_id) for line in lines]) if lines else ""
    words = {"order": f"order {order.order_id}", "things": things, "what": f"{things} in {name.it}", **fill}
    return wished(operation, order.order_id, given, name, fill=words, amount=amount)


def plain(operation: Operation, order: RetailOrder, **given: str) -> WishedChange:
    """A wish about an order by its number, which costs nothing."""
    it = f"order {order.order_id}"
    arguments = {"order_id": order.order_id, **given}
    return WishedChange(operation, order.order_id, arguments, {"it": it, "order": it, **given})


def _cancel(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    reason, said = parts.why(draft)
    wish = _about(operation, draft, order, {"reason": reason}, amount=order.total)
    return wish._replace(
        asks=(ask("Why do you want to cancel it?", "reason"),),
        said=said if draft.rng.random() < 0.6 else "",
        knows={"reason": said},
    )


def _other(draft: StoryDraft, payment_id: Json) -> str | None:
    """Another payment of the customer."""
    others = [payment.id for payment in parts.me(draft).payments if payment.id != payment_id]
    return draft.rng.choice(others) if others else None


def _pay(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange | None:
    other = _other(draft, order.payment)
    return _about(operation, draft, order, {"payment_id": other}) if other else None


def _remove(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    return removal(operation, draft, order, draft.rng.choice(order.lines))


def removal(operation: Operation, draft: StoryDraft, order: RetailOrder, line: OrderLine) -> WishedChange:
    return _about(operation, draft, order, {"item_id": line.item_id}, lines=[line], amount=line.price)


def _give_back(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange:
    lines = draft.rng.sample(order.lines, draft.rng.randint(1, len(order.lines)))
    methods = (
        [payment.id for payment in parts.me(draft).payments]
        if order.user_id == draft.customer
        else [order.payment]
    )
    return giving_back(operation, draft, order, lines, draft.rng.choice(methods))


def giving_back(
    operation: Operation, draft: StoryDraft, order: RetailOrder, lines: Sequence[OrderLine], refund_to: str
) -> WishedChange:  # fmt: skip
    items: list[Json] = sorted(line.item_id for line in lines)
    given: Mapping[str, Json] = {"item_ids": items, "refund_to": refund_to}
    return _about(operation, draft, order, given, lines=lines, amount=sum(line.price for line in lines))


def _swap(operation: Operation, draft: StoryDraft, order: RetailOrder) -> WishedChange | None:
    """Another variant by its name, or the cheapest of a colour; now and then another product."""
    line = draft.rng.choice(order.lines)
    if draft.rng.random() < 0.4:
        return cheapest_swap(operation, draft, order, line)
    old: RetailItem = draft.db.get("items", line.item_id)
    others = [item for item in draft.db.rows("items") if item.product != old.product]
    able = others if draft.rng.random() < 0.15 else parts.variants(draft, old)
    return swapping(operation, draft, order, line, draft.rng.choice(able))


def cheapest_swap(
    operation: Operation, draft: StoryDraft, order: RetailOrder, line: OrderLine, *, least: int | None = None
) -> WishedChange | None:  # fmt: skip
    """A swap for the cheapest variant of another colour; one that costs ``least`` cents more, where that is given."""
    old: RetailItem = draft.db.get("items", line.item_id)
    able = [
        item for item in parts.cheapest_of(parts.variants(draft, old)).values() if item.colour != old.colour
    ]
    found = [item for item in able if least is None or item.price >= line.price + least]
    return swapping(operation, draft, order, line, draft.rng.choice(found), cheapest=True) if found else None


def swapping(
    operation: Operation, draft: StoryDraft, order: RetailOrder, line: OrderLine, new: RetailItem, *, cheapest: bool = False
) -> WishedChange | None:  # fmt: skip
    """A thing of an order is swapped for a variant, which is called by its name or as the cheapest of its colour."""
    amount = new.price - line.price
    paid = parts.settles(draft, amount)
    if paid is None:
        return None
    name = parts.thing(draft, new.item_id)
    fill = {
        "new_thing": f"the {name}", "new": f"the cheapest {new.colour} {new.product} in stock" if cheapest else f"the {name}",
        "verb": operation.name, "done": f"{operation.name}d",
    }  # fmt: skip
    given: Mapping[str, Json] = {
        "item_id": line.item_id, "new_item_id": new.item_id, "payment_id": paid.id,
    }  # fmt: skip
    wish = _about(operation, draft, order, given, lines=[line], fill=fill, amount=amount)
    said = draft.say("settle the difference", payment_id=paid.id)
    return wish._replace(
        reads=(call("get_product", product=new.product),),
        asks=(ask("Which payment method shall the difference go to?", "payment"),),
        # an offer to use a card, to which they say yes, is right as well where they have not named a gift card
        said=said if paid.kind == "gift" or draft.rng.random() < 0.6 else "",
        knows={"payment": parts.PAYS_WITH[paid.kind]},
    )


def _other_variant(draft: StoryDraft, wish: WishedChange) -> WishedChange | None:
    """The same thing swapped for another variant, which is called in the same way."""
    order: RetailOrder = draft.db.get("orders", wish.subject)
    line = next(line for line in order.lines if line.item_id == wish.arguments["item_id"])
    first: RetailItem = draft.db.get("items", wish.arguments["new_item_id"])
    cheapest = wish.fill["new"] != wish.fill["new_thing"]
    able = parts.variants(draft, draft.db.get("items", line.item_id))
    others = [item for item in (parts.cheapest_of(able).values() if cheapest else able) if item != first]
    if not others:
        return None
    found = swapping(wish.operation, draft, order, line, draft.rng.choice(others), cheapest=cheapest)
    if found is None or found.arguments["payment_id"] != wish.arguments["payment_id"]:
        return None
    return found._replace(find=wish.find, asks=wish.asks, said=wish.said)


def _other_payment(name: str) -> Callable[[StoryDraft, WishedChange], WishedChange | None]:
    """The same wish with another payment as the argument of this name."""

    def rethink(draft: StoryDraft, wish: WishedChange) -> WishedChange | None:
        other = _other(draft, wish.arguments[name])
        return wish.given(**{name: other}) if other else None

    return rethink


def _move(operation: Operation, draft: StoryDraft, user: User) -> WishedChange:
    new = address(draft.rng)
    return WishedChange(operation, "home", {"user_id": user.user_id, "address": new}, {"address": new})


# --- the changes -------------------------------------------------------------------------------------

_CHANGES = ChangeTable("turnwise.envs.toolworld.retail", DESK)
_ONCE: Mapping[str, Any] = {"prepare": {"changed_before": lambda draft, order: [("orders", order.order_id, {"changed": True})]}}  # fmt: skip
_SWAPS: Mapping[str, Any] = {"read_for": ("other_product", "out_of_stock"), "rethink": _other_variant}


def _change(
    name: str, tool: str, draw: Callable[[Operation, StoryDraft, RetailOrder], WishedChange | None], may: Mapping[str, Kept] = {}, *,
    status: Kept = _PENDING, of: Sequence[str] = UNSENT, **more: Any,
) -> Operation:  # fmt: skip
    """A change that an order's owner may have in a status; it is wished for orders ``of`` some statuses."""
    rules = {"not_owner": _is_own, "status": status, **may}
    return _CHANGES.operation(name, tool, orders(*of), draw, rules, **more)


CANCEL = _change(
    "cancel", "cancel_order", _cancel, {"cancel_reason": lambda db, customer, given: bool(given["reason"])}, of=ANY, asked_for=("cancel_reason",)
)  # fmt: skip
CHANGE = _change(
    "change", "change_item", _swap, {"changed_before": _UNCHANGED, **_VARIANT}, **_SWAPS, **_ONCE
)
EXCHANGE = _change("exchange", "exchange_item", _swap, _VARIANT, status=_DELIVERED, of=ANY[1:], **_SWAPS)
ADDRESS = _change(
    "address", "change_address", lambda operation, draft, order: _about(operation, draft, order, {"address": address(draft.rng)}),
    shares=("address",), rethink=lambda draft, wish: wish.given(address=address(draft.rng)),
)  # fmt: skip
PAYMENT = _change("payment", "change_payment", _pay, rethink=_other_payment("payment_id"))
REMOVE = _change("remove", "remove_item", _remove, {"changed_before": _UNCHANGED}, **_ONCE)
WRAP = _change(
    "wrap", "wrap_order", lambda operation, draft, order: _about(operation, draft, order, amount=WRAP_PRICE * len(order.lines))
)  # fmt: skip
RETURN = _change(
    "return", "return_items", _give_back, {"refund_method": _of_order(_may_get_refund)}, status=_DELIVERED, of=ANY, rethink=_other_payment("refund_to")
)  # fmt: skip
HOME = _CHANGES.operation("home", "change_user_address", lambda draft, own: [parts.me(draft)] if own else [], _move, {})  # fmt: skip
DISCOUNT = _CHANGES.operation(
    "discount", "", orders(*ANY), lambda operation, draft, order: _about(operation, draft, order, fill={"share": str(draft.rng.choice((5, 10, 15, 20, 30)))}),
    {"not_owner": _is_own, "no_discount": never},
)  # fmt: skip
OPERATIONS = (CANCEL, CHANGE, EXCHANGE, ADDRESS, PAYMENT, REMOVE, WRAP, RETURN, HOME, DISCOUNT)
