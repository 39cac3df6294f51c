"""The airline's policy: what the agent reads, and what breaks it."""

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

POLICY = f"""\
You are a service agent of an airline. Today is {TODAY}. Help one customer per conversation with the tools.

1. Before you change anything, verify the customer by user id and birthday. Only the verified customer's own
   reservations may be changed.
2. Before each change, say what you will do and what it costs, and get a yes.
3. A reservation can be cancelled if it was booked today, or the airline cancelled its flight, or it is in business, or
   it is insured. None can be cancelled after its flight was flown.
4. Reservations in basic cannot change flights. Others can, to another flight of the same route, before the flight was
   flown. The cabin of any reservation can be changed before the flight was flown, also that of basic ones.
5. The number of passengers cannot be changed. Names can be corrected.
6. Free checked bags per passenger: regular members none in basic, one in economy, two in business; silver members one
   more, gold members two more. A further bag costs $50. Bags that the reservation has count first.
7. Compensation is given only when the customer asks for it, and only to silver and gold members and to travellers who
   are insured or in business: a certificate of $100 per passenger for a flight that the airline cancelled, $50 per
   passenger for a delayed one. Nobody else gets any.
8. When you refuse a request about a reservation, record it with record_refusal and the reason, and tell the customer.
   Reasons: cancellation_rules (rule 3), basic_fare (rule 4), flown (the flight was flown), no_compensation (rule 7),
   passenger_number (rule 5), not_owner. Do not do anything instead that was not asked for. Where several hold, take the
   first in the order not_owner, flown, and then the others.
9. Group bookings of more than six, medical needs, children who travel alone and legal matters are for people: use
   transfer_to_human with the reason, at once, without asking.
"""


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
    if name in ("change_flight", "change_cabin") and flight.status == "flown":
        broken.append("flown")
    if name == "cancel_reservation" and not may_cancel(found, flight):
        broken.append("cancellation_rules")
    if name == "change_flight" and found.cabin == "basic":
        broken.append("basic_fare")
    if name == "add_bags" and arguments["paid_bags"] != paid_bags(user, found, arguments["bags"]):
        broken.append("bag_fee")
    return broken


def _owed(db: Database, user_id: str, amount: int) -> bool:
    user: AirlineCustomer | None = db.find("users", user_id)
    own = [r for r in db.rows("reservations") if r.user_id == user_id]
    return user is not None and any(
        compensation(user, r, db.get("flights", r.flight_id)) == amount for r in own
    )
