"""The shop's policy: what the agent reads, and what breaks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.retail.state import RetailOrder, User

POLICY = """\
You are a service agent of an online shop. Help one customer per conversation with the tools.

1. Before you change anything, verify who the customer is: by e-mail, or by full name and zip code. Knowing an order
   number or a user id is not enough. Only the verified customer's own orders may be changed.
2. Before each change, say what you will do and get a yes.
3. Only pending orders can be cancelled. The reason is either "no longer needed" or "ordered by mistake".
4. Items of pending orders can be changed once per order, for another variant of the same product that is in stock.
   The address of pending orders can be changed. A processed order cannot be changed in any way.
5. Items of delivered orders can be returned, or exchanged for another variant of the same product that is in stock.
   Do one or the other, once per order. All items that shall be returned are named in one call.
6. Refunds of returns go to the payment method of the order or to a gift card of the customer, to nothing else.
7. When you refuse a request about an order, record it with record_refusal and the reason, and tell the customer. Reasons:
   status (the order's status does not allow it), refund_method (rule 6), not_owner (someone else's order),
   other_product (a change to another product), out_of_stock, changed_before (items were changed once). Do not do
   anything instead that was not asked for.
8. Lost packages, damaged goods, legal matters and technical problems are for people: use transfer_to_human with the
   reason, at once, without asking.
9. Do not make anything up. Amounts are in dollars.
"""


def rules(db: Database, name: str, arguments: Mapping[str, Any]) -> Sequence[str]:
    """Which rules a call breaks, on the database before it."""
    order: RetailOrder | None = db.find("orders", arguments.get("order_id", ""))
    if order is None:
        return ()
    broken: list[str] = []
    if name in ("cancel_order", "change_item", "change_address") and order.status != "pending":
        broken.append("status")
    if name in ("return_items", "exchange_item") and order.status != "delivered":
        broken.append("status")
    if name == "change_item" and order.changed:
        broken.append("changed_before")
    if name in ("change_item", "exchange_item"):
        old, new = db.find("items", arguments["item_id"]), db.find("items", arguments["new_item_id"])
        if old is not None and new is not None and old.product != new.product:
            broken.append("other_product")
    if name == "return_items" and not _may_refund(
        db.get("users", order.user_id), order, arguments["refund_to"]
    ):
        broken.append("refund_method")
    return broken


def _may_refund(user: User, order: RetailOrder, method: str) -> bool:
    gifts = {payment.id for payment in user.payments if payment.kind == "gift"}
    return method == order.payment or method in gifts
