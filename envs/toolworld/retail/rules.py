"""What breaks the shop's policy (policy.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.retail.state import RetailOrder, User

_PENDING = ("cancel_order", "change_item", "change_address", "change_payment", "remove_item", "wrap_order")


def rules(db: Database, name: str, arguments: Mapping[str, Any]) -> Sequence[str]:
    """Which rules a call breaks, on the database before it."""
    order: RetailOrder | None = db.find("orders", arguments.get("order_id", ""))
    if order is None:
        return ()
    broken: list[str] = []
    if name in _PENDING and order.status != "pending":
        broken.append("status")
    if name in ("return_items", "exchange_item") and order.status != "delivered":
        broken.append("status")
    if name in ("change_item", "remove_item") and order.changed:
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
