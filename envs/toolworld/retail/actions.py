"""Calls that an agent of the shop can make. Tools keep the data whole; the policy is the agent's to keep."""

from __future__ import annotations

import re
from typing import Literal

from turnwise.envs.toolworld.arithmetic import calculate
from turnwise.envs.toolworld.database import Database, plain
from turnwise.envs.toolworld.domain import Written
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.retail.state import OrderLine, Payment, RetailItem, RetailOrder, User
from turnwise.envs.toolworld.service import recorded_refusal, recorded_transfer, service_acts
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolError

WRAP_PRICE = 300


def find_user_by_email(db: Database, email: str) -> Written:
    """Find and verify a customer by e-mail address."""
    return _found(db, [user for user in db.rows("users") if user.email == email.strip().lower()])


def find_user_by_name_zip(db: Database, name: str, zip: str) -> Written:
    """Find and verify a customer by full name and zip code."""
    wanted = name.strip().lower()
    return _found(db, [user for user in db.rows("users") if user.name.lower() == wanted and user.zip == zip])


def get_user(db: Database, user_id: str) -> Json:
    """A customer's address, payment methods and orders."""
    user: User = db.get("users", user_id)
    orders = [order.order_id for order in db.rows("orders") if order.user_id == user_id]
    payments: list[Json] = [
        {"id": p.id, "kind": p.kind, **({"balance": dollars(p.balance)} if p.kind == "gift" else {})}
        for p in user.payments
    ]
    return {**plain(user), "payments": payments, "orders": orders}


def get_order(db: Database, order_id: str) -> Json:
    """An order with its items, status and payment."""
    order = _order(db, order_id)
    lines: list[Json] = []
    for line in order.lines:
        item: RetailItem = db.get("items", line.item_id)
        name = f"{item.product}, {item.colour}, {item.size}"
        lines.append({"item_id": line.item_id, "item": name, "paid": dollars(line.price)})
    return {**plain(order), "lines": lines, "refund": dollars(order.refund)}


def list_products(db: Database) -> Json:
    """The names of all products."""
    return sorted({item.product for item in db.rows("items")})


def get_product(db: Database, product: str) -> Json:
    """All variants of a product with price and stock."""
    found = [item for item in db.rows("items") if item.product == product.strip().lower()]
    if not found:
        raise ToolError(f"No product is called {product[:60]!r}; list_products() names them.")
    return [{**plain(item), "price": dollars(item.price)} for item in found]


def cancel_order(
    db: Database, order_id: str, reason: Literal["no longer needed", "ordered by mistake"]
) -> Written:
    """Cancel an order; its payment is refunded."""
    order = _order(db, order_id)
    if order.status == "cancelled":
        raise ToolError("The order is cancelled already.")
    refund = {"refund": order.total, "refund_to": order.payment}
    db = db.update("orders", order_id, status="cancelled", reason=reason, **refund)
    return Written(db, {"order_id": order_id, "status": "cancelled", "refund": dollars(order.total)})


def change_item(db: Database, order_id: str, item_id: str, new_item_id: str, payment_id: str) -> Written:
    """Replace an item of an order that was not sent; the difference is charged to or refunded on the payment."""
    db, difference = _swapped(db, order_id, item_id, new_item_id, payment_id)
    db = db.update("orders", order_id, changed=True)
    return Written(db, {"order_id": order_id, "charged": dollars(difference)})


def _tidy(address: str) -> str:
    """An address as it is kept, however its parts are set apart.

    >>> _tidy(" 52 Bridge Street,  Larkhill, 79034. ")
    '52 Bridge Street, Larkhill 79034'
    """
    return re.sub(r",? (\d{5})$", r" \1", " ".join(address.split()).rstrip(" .,"))


def change_address(db: Database, order_id: str, address: str) -> Written:
    """Change where an order goes."""
    _order(db, order_id)
    db = db.update("orders", order_id, address=_tidy(address))
    return Written(db, {"order_id": order_id, "address": address})


def return_items(db: Database, order_id: str, item_ids: list[str], refund_to: str) -> Written:
    """Take items of an order back; refund their price to a payment method of the customer."""
    order = _order(db, order_id)
    wanted = sorted(set(item_ids))
    missing = [item for item in wanted if item not in {line.item_id for line in order.lines}]
    if missing or not wanted:
        raise ToolError(f"Not in this order: {', '.join(missing)[:100] or 'nothing was named'}.")
    _payment(db.get("users", order.user_id), refund_to)
    total = sum(line.price for line in order.lines if line.item_id in wanted)
    refund = {"refund": total, "refund_to": refund_to, "reason": ",".join(wanted)}
    db = db.update("orders", order_id, status="return requested", **refund)
    return Written(db, {"order_id": order_id, "status": "return requested", "refund": dollars(total)})


def exchange_item(db: Database, order_id: str, item_id: str, new_item_id: str, payment_id: str) -> Written:
    """Exchange a delivered item; the difference is charged to or refunded on the payment."""
    db, difference = _swapped(db, order_id, item_id, new_item_id, payment_id)
    db = db.update("orders", order_id, status="exchange requested")
    return Written(db, {"order_id": order_id, "status": "exchange requested", "charged": dollars(difference)})


def change_payment(db: Database, order_id: str, payment_id: str) -> Written:
    """Pay an order that was not sent with another payment method; a gift card must hold the whole price."""
    order = _order(db, order_id)
    if payment_id == order.payment:
        raise ToolError("The order is paid with this already.")
    db = _charged(db, order, payment_id, order.total, back_to=order.payment)
    return Written(
        db.update("orders", order_id, payment=payment_id), {"order_id": order_id, "payment": payment_id}
    )


def remove_item(db: Database, order_id: str, item_id: str) -> Written:
    """Take an item out of an order that was not sent, and refund its price."""
    order = _order(db, order_id)
    found = next((line for line in order.lines if line.item_id == item_id), None)
    if found is None or len(order.lines) == 1:
        raise ToolError("It is not in this order, or the only thing in it; cancel the order then.")
    lines = tuple(line for line in order.lines if line.item_id != item_id)
    db = db.update("orders", order_id, lines=lines, changed=True, refund=order.refund + found.price)
    return Written(db, {"order_id": order_id, "refund": dollars(found.price)})


def wrap_order(db: Database, order_id: str) -> Written:
    """Wrap an order that was not sent as a gift, for $3.00 an item."""
    order = _order(db, order_id)
    if order.wrapped:
        raise ToolError("The order is wrapped already.")
    cost = WRAP_PRICE * len(order.lines)
    db = db.update("orders", order_id, wrapped=True)
    return Written(db, {"order_id": order_id, "charged": dollars(cost)})


def change_user_address(db: Database, user_id: str, address: str) -> Written:
    """Change the address of a customer's account; orders keep theirs."""
    db.get("users", user_id)
    db = db.update("users", user_id, address=_tidy(address))
    return Written(db, {"user_id": user_id, "address": address})


Reason = Literal[
    "status",
    "refund_method",
    "not_owner",
    "other_product",
    "out_of_stock",
    "changed_before",
    "cancel_reason",
    "no_discount",
]


def record_refusal(db: Database, order_id: str, reason: Reason) -> Written:
    """Put on record that a request about an order was refused, and why."""
    _order(db, order_id)
    return recorded_refusal(db, order_id, reason)


HandOver = Literal["lost_package", "damaged", "legal", "technical"]


def transfer_to_human(db: Database, reason: HandOver) -> Written:
    """Hand the customer over to a person. Ends the conversation."""
    return recorded_transfer(db, reason)


def _found(db: Database, users: list[User]) -> Written:
    if len(users) != 1:
        raise ToolError("No such customer.")
    return Written(db, {"user_id": users[0].user_id}, users[0].user_id)


def _order(db: Database, order_id: str) -> RetailOrder:
    return db.get("orders", order_id)


def _payment(user: User, payment_id: str) -> Payment:
    for payment in user.payments:
        if payment.id == payment_id:
            return payment
    raise ToolError(f"The customer has no payment method {payment_id[:40]!r}.")


def _swapped(
    db: Database, order_id: str, item_id: str, new_item_id: str, payment_id: str
) -> tuple[Database, int]:
    """With a thing of an order replaced by a variant and the difference settled, and what it was."""
    order, new = _order(db, order_id), db.get("items", new_item_id)
    old = next((line for line in order.lines if line.item_id == item_id), None)
    if old is None:
        raise ToolError(f"Item {item_id[:20]!r} is not in this order.")
    if not new.in_stock:
        raise ToolError(f"Item {new.item_id} is out of stock.")
    made = OrderLine(new.item_id, new.price)
    lines = tuple(made if line.item_id == item_id else line for line in order.lines)
    db = _charged(db, order, payment_id, new.price - old.price)
    return db.update("orders", order_id, lines=lines), new.price - old.price


def _charged(db: Database, order: RetailOrder, payment_id: str, amount: int, back_to: str = "") -> Database:
    """With an amount charged (refunded where negative), and given back to another payment; a gift card cannot go below zero."""
    user: User = db.get("users", order.user_id)
    payment = _payment(user, payment_id)
    if payment.kind == "gift" and payment.balance < amount:
        raise ToolError(f"The gift card has only {dollars(payment.balance)}.")
    paid = {payment.id: -amount, back_to: amount}
    payments = tuple(
        p._replace(balance=p.balance + paid.get(p.id, 0)) if p.kind == "gift" else p for p in user.payments
    )
    return db.update("users", user.user_id, payments=payments)


ACTS = service_acts("turnwise.envs.toolworld.retail", "orders", "order_id", {
    "identify": (find_user_by_email, find_user_by_name_zip),
    "read": (get_user, get_order, list_products, get_product, calculate),
    "write": (cancel_order, change_item, change_address, return_items, exchange_item, change_payment, remove_item, wrap_order, change_user_address),
    "note": (record_refusal,),
    "end": (transfer_to_human,),
})  # fmt: skip
