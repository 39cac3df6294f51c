"""Calls that an agent of the airline can make."""

from __future__ import annotations

import re
from typing import Literal

from turnwise.envs.toolworld.airline.state import BAG_PRICE, CABINS, AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.arithmetic import calculate
from turnwise.envs.toolworld.database import Database, fresh_key, plain
from turnwise.envs.toolworld.domain import Written
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.service import recorded_refusal, recorded_transfer, service_acts
from turnwise.tasks.core import Json
from turnwise.tools.core import ToolError

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
Cabin = Literal["basic", "economy", "business"]


def verify_customer(db: Database, user_id: str, birthday: str) -> Written:
    """Find and verify a customer by user id and birthday (YYYY-MM-DD)."""
    user: AirlineCustomer | None = db.find("users", user_id)
    if user is None or user.birthday != birthday:
        raise ToolError("No such customer, or another birthday (it is written YYYY-MM-DD).")
    return Written(db, {"user_id": user_id, "verified": True}, user_id)


def get_customer(db: Database, user_id: str) -> Json:
    """A customer's membership, card and reservations."""
    user: AirlineCustomer = db.get("users", user_id)
    own = [r.reservation_id for r in db.rows("reservations") if r.user_id == user_id]
    return {**plain(user), "birthday": "hidden", "credit": dollars(user.credit), "reservations": own}


def get_reservation(db: Database, reservation_id: str) -> Json:
    """A reservation with its flight."""
    found: Reservation = db.get("reservations", reservation_id)
    money = {name: dollars(getattr(found, name)) for name in ("price", "charged", "refunded")}
    return {**plain(found), **money, "flight": _flight_json(db.get("flights", found.flight_id))}


def get_flight(db: Database, flight_id: str) -> Json:
    """A flight's times, status, prices and free seats."""
    return _flight_json(db.get("flights", flight_id))


def search_flights(db: Database, origin: str, destination: str, date: str) -> Json:
    """Flights from one airport to another on a date (YYYY-MM-DD)."""
    if _DATE.fullmatch(date) is None:
        raise ToolError(f"A date is written YYYY-MM-DD, not {date[:40]!r}.")
    flights: list[Flight] = db.rows("flights")
    return [_flight_json(f) for f in flights if (*f.route, f.date) == (origin, destination, date)]


def book_flight(db: Database, user_id: str, flight_id: str, cabin: Cabin, passengers: list[str]) -> Written:
    """Book a flight for passengers (full names); the customer's card is charged."""
    user, flight = db.get("users", user_id), db.get("flights", flight_id)
    names = tuple(name.strip() for name in passengers)
    if not names or len(names) > 6 or not all(names):
        raise ToolError("One to six passengers.")
    db = _take_seats(db, flight, cabin, len(names))
    key = fresh_key(db, "reservations", "N", user_id, flight_id, cabin, sorted(names))
    price = flight.prices[CABINS.index(cabin)]
    made = Reservation(key, user.user_id, flight_id, cabin, names, 0, False, "2026-05-15", price)
    made = made._replace(charged=price * len(names))
    return Written(
        db.put("reservations", key, made), {"reservation_id": key, "charged": dollars(made.charged)}
    )


def cancel_reservation(db: Database, reservation_id: str) -> Written:
    """Cancel a reservation and refund its price."""
    found = _active(db, reservation_id)
    refund = found.price * len(found.passengers)
    db = _free_seats(db, found)
    db = db.update("reservations", reservation_id, status="cancelled", refunded=found.refunded + refund)
    return Written(db, {"reservation_id": reservation_id, "refund": dollars(refund)})


def change_flight(db: Database, reservation_id: str, new_flight_id: str) -> Written:
    """Move a reservation to another flight in the same cabin; the difference is charged or refunded."""
    found, flight = _active(db, reservation_id), db.get("flights", new_flight_id)
    old: Flight = db.get("flights", found.flight_id)
    if old.route != flight.route or flight.flight_id == old.flight_id:
        raise ToolError("Another flight of the same route is needed.")
    db = _take_seats(_free_seats(db, found), flight, found.cabin, len(found.passengers))
    return _repriced(db, found._replace(flight_id=new_flight_id), flight.prices[CABINS.index(found.cabin)])


def change_cabin(db: Database, reservation_id: str, cabin: Cabin) -> Written:
    """Move a reservation to another cabin of its flight; the difference is charged or refunded."""
    found = _active(db, reservation_id)
    if found.cabin == cabin:
        raise ToolError(f"The reservation is in {cabin} already.")
    db = _free_seats(db, found)
    flight: Flight = db.get("flights", found.flight_id)
    db = _take_seats(db, flight, cabin, len(found.passengers))
    return _repriced(db, found._replace(cabin=cabin), flight.prices[CABINS.index(cabin)])


def add_bags(db: Database, reservation_id: str, bags: int, paid_bags: int) -> Written:
    """Add checked bags to a reservation: some are paid at $50 each, the others are free."""
    found = _active(db, reservation_id)
    if not 0 < bags <= 20 or not 0 <= paid_bags <= bags:
        raise ToolError("One to twenty bags, and no more paid ones than bags.")
    charge = paid_bags * BAG_PRICE
    db = db.update("reservations", reservation_id, bags=found.bags + bags, charged=found.charged + charge)
    return Written(db, {"reservation_id": reservation_id, "charged": dollars(charge)})


def rename_passenger(db: Database, reservation_id: str, old_name: str, new_name: str) -> Written:
    """Correct the name of a passenger."""
    found = _active(db, reservation_id)
    if old_name not in found.passengers or not new_name.strip():
        raise ToolError(f"No passenger {old_name[:40]!r} in this reservation.")
    names = tuple(new_name.strip() if name == old_name else name for name in found.passengers)
    return Written(db.update("reservations", reservation_id, passengers=names), "changed")


def issue_certificate(db: Database, user_id: str, amount_dollars: int) -> Written:
    """Give a customer a travel certificate of whole dollars."""
    user: AirlineCustomer = db.get("users", user_id)
    if not 0 < amount_dollars <= 10_000:
        raise ToolError("One to 10,000 dollars.")
    return Written(db.update("users", user_id, credit=user.credit + 100 * amount_dollars), "issued")


def add_meal(
    db: Database, reservation_id: str, meal: Literal["vegetarian", "vegan", "kosher", "halal"]
) -> Written:
    """Order a special meal for all passengers: free in business, $12 per passenger otherwise."""
    found = _active(db, reservation_id)
    db = db.update("reservations", reservation_id, meal=meal, charged=found.charged + found.meal_price)
    return Written(db, {"reservation_id": reservation_id, "charged": dollars(found.meal_price)})


def add_insurance(db: Database, reservation_id: str) -> Written:
    """Insure a reservation, $30 per passenger."""
    found = _active(db, reservation_id)
    if found.insured:
        raise ToolError("The reservation is insured already.")
    charged = found.charged + found.insurance_price
    db = db.update("reservations", reservation_id, insured=True, charged=charged)
    return Written(db, {"reservation_id": reservation_id, "charged": dollars(found.insurance_price)})


Reason = Literal[
    "cancellation_rules", "basic_fare", "flown", "no_compensation", "passenger_number", "not_owner",
    "route_change", "insurance_late",
]  # fmt: skip


def record_refusal(db: Database, reservation_id: str, reason: Reason) -> Written:
    """Put on record that a request about a reservation was refused, and why."""
    db.get("reservations", reservation_id)
    return recorded_refusal(db, reservation_id, reason)


HandOver = Literal["group_booking", "medical", "unaccompanied_child", "legal"]


def transfer_to_human(db: Database, reason: HandOver) -> Written:
    """Hand the customer over to a person. Ends the conversation."""
    return recorded_transfer(db, reason)


def _flight_json(flight: Flight) -> Json:
    prices = {cabin: dollars(price) for cabin, price in zip(CABINS, flight.prices, strict=True)}
    return {**plain(flight), "prices": prices, "seats": dict(zip(CABINS, flight.seats, strict=True))}


def _active(db: Database, reservation_id: str) -> Reservation:
    found: Reservation = db.get("reservations", reservation_id)
    if found.status != "active":
        raise ToolError(f"The reservation is {found.status}.")
    return found


def _take_seats(db: Database, flight: Flight, cabin: str, n: int) -> Database:
    if flight.status not in ("scheduled", "delayed"):
        raise ToolError(f"The flight is {flight.status}.")
    return _seats(db, flight.flight_id, cabin, -n)


def _free_seats(db: Database, found: Reservation) -> Database:
    return _seats(db, found.flight_id, found.cabin, len(found.passengers))


def _seats(db: Database, flight_id: str, cabin: str, n: int) -> Database:
    flight: Flight = db.get("flights", flight_id)
    place = CABINS.index(cabin)
    left = flight.seats[place] + n
    if left < 0:
        raise ToolError(f"Only {flight.seats[place]} seats are left in {cabin}.")
    return db.update("flights", flight_id, seats=(*flight.seats[:place], left, *flight.seats[place + 1 :]))


def _repriced(db: Database, moved: Reservation, price: int) -> Written:
    difference = (price - moved.price) * len(moved.passengers)
    moved = moved._replace(
        price=price, charged=moved.charged + max(difference, 0), refunded=moved.refunded + max(-difference, 0)
    )
    db = db.put("reservations", moved.reservation_id, moved)
    return Written(db, {"reservation_id": moved.reservation_id, "charged": dollars(difference)})


ACTS = service_acts("turnwise.envs.toolworld.airline", "reservations", "reservation_id", {
    "identify": (verify_customer,),
    "read": (get_customer, get_reservation, get_flight, search_flights, calculate),
    "write": (book_flight, cancel_reservation, change_flight, change_cabin, add_bags, rename_passenger, issue_certificate, add_meal, add_insurance),
    "note": (record_refusal,),
    "end": (transfer_to_human,),
})  # fmt: skip
