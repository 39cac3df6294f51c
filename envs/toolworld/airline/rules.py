"""What breaks the airline's policy (policy.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnwise.envs.toolworld.airline.state import (
    CABINS,
    FREE_BAGS,
    TODAY,
    AirlineCustomer,
    Flight,
    Reservation,
)
from turnwise.envs.toolworld.database import Database

_BEFORE = ("change_flight", "change_cabin", "add_bags", "rename_passenger", "add_meal", "add_insurance")


def may_cancel(found: Reservation, flight: Flight) -> bool:
    return flight.status != "flown" and (
        found.booked == TODAY or flight.status == "cancelled" or found.cabin == "business" or found.insured
    )


def compensation(user: AirlineCustomer, found: Reservation, flight: Flight) -> int:
    """Dollars that rule 7 gives."""
    entitled = user.membership != "regular" or found.insured or found.cabin == "business"
    each = {"cancelled": 100, "delayed": 50}.get(flight.status, 0)
    return each * len(found.passengers) if entitled else 0


def paid_bags(user: AirlineCustomer, found: Reservation, bags: int) -> int:
    """How many of ``bags`` more bags must be paid for."""
    free = FREE_BAGS[user.membership][CABINS.index(found.cabin)] * len(found.passengers)
    return max(0, min(bags, found.bags + bags - free))


def rules(db: Database, name: str, arguments: Mapping[str, Any]) -> Sequence[str]:
    """Which rules a call breaks, on the database before it."""
    if name == "issue_certificate":
        return () if _owed(db, arguments["user_id"], arguments["amount_dollars"]) else ("no_compensation",)
    found: Reservation | None = db.find("reservations", arguments.get("reservation_id", ""))
    if found is None or name == "record_refusal":
        return ()
    flight: Flight = db.get("flights", found.flight_id)
    user: AirlineCustomer = db.get("users", found.user_id)
    broken: list[str] = []
    if name in _BEFORE and flight.status == "flown":
        broken.append("flown")
    if name == "cancel_reservation" and not may_cancel(found, flight):
        broken.append("cancellation_rules")
    if name == "change_flight" and found.cabin == "basic":
        broken.append("basic_fare")
    if name == "add_insurance" and flight.status in ("delayed", "cancelled"):
        broken.append("insurance_late")
    if name == "add_bags" and arguments["paid_bags"] != paid_bags(user, found, arguments["bags"]):
        broken.append("bag_fee")
    return broken


def _owed(db: Database, user_id: str, amount: int) -> bool:
    user: AirlineCustomer | None = db.find("users", user_id)
    own = [r for r in db.rows("reservations") if r.user_id == user_id]
    return user is not None and any(
        compensation(user, r, db.get("flights", r.flight_id)) == amount for r in own
    )
