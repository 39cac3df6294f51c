"""Changes that the airline can make for its customers: how each is asked for, offered and reported, and when
it is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from turnwise.envs.toolworld.airline import parts
from turnwise.envs.toolworld.airline.parts import DESK, Trip, trips
from turnwise.envs.toolworld.airline.state import (
    AIRPORTS,
    BAG_PRICE,
    CABINS,
    DAYS,
    FREE_BAGS,
    TODAY,
    AirlineCustomer,
    Flight,
    Reservation,
)
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import dollars
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
from turnwise.envs.toolworld.vocabulary import counted, world_words
from turnwise.tasks.core import Json

SECTIONS = {
    "not_owner": "1.1", "flown": "4.3, 5.5", "cancellation_rules": "4.2", "basic_fare": "5.1", "route_change": "5.2",
    "passenger_number": "5.4", "insurance_late": "6.4", "no_compensation": "7.1",
}  # fmt: skip
"""Rule → where the policy has it, in the order in which the policy takes them."""
MEALS = ("vegetarian", "vegan", "kosher", "halal")


# --- the policy's rules ------------------------------------------------------------------------------


def may_cancel(trip: Trip) -> bool:
    found, flight = trip
    return flight.status != "flown" and (
        found.booked == TODAY or flight.status == "cancelled" or found.cabin == "business" or found.insured
    )


def compensation(user: AirlineCustomer, trip: Trip) -> int:
    """Dollars that section 7 gives."""
    entitled = user.membership != "regular" or trip.found.insured or trip.found.cabin == "business"
    each = {"cancelled": 100, "delayed": 50}.get(trip.flight.status, 0)
    return each * len(trip.found.passengers) if entitled else 0


def paid_bags(user: AirlineCustomer, found: Reservation, bags: int) -> int:
    """Count how many of ``bags`` more bags must be paid for."""
    free = FREE_BAGS[user.membership][CABINS.index(found.cabin)] * len(found.passengers)
    return max(0, min(bags, found.bags + bags - free))


def _of_trip(kept: Callable[[Database, Trip, Mapping[str, Any]], bool]) -> Kept:
    """A rule about the trip that a call names."""
    return about(
        "reservations", "reservation_id", lambda db, found, given: kept(db, Trip(found, db.get("flights", found.flight_id)), given)
    )  # fmt: skip


def _is_owed(db: Database, customer: str | None, given: Mapping[str, Any]) -> bool:
    user: AirlineCustomer | None = db.find("users", given["user_id"])
    own = [
        Trip(r, db.get("flights", r.flight_id))
        for r in db.rows("reservations")
        if r.user_id == given["user_id"]
    ]
    owed = {compensation(user, trip) for trip in own} - {0} if user else set[int]()
    return given["amount_dollars"] in owed


_RULES: Mapping[str, Kept] = {
    "not_owner": owned("reservations", "reservation_id", "user_id"),
    "flown": _of_trip(lambda db, trip, given: trip.flight.status != "flown"),
}
_BAG_FEE = _of_trip(
    lambda db, trip, given: given["paid_bags"] == paid_bags(db.get("users", trip.found.user_id), trip.found, given["bags"])
)  # fmt: skip


# --- wishes ------------------------------------------------------------------------------------------


def _about(
    operation: Operation, draft: StoryDraft, trip: Trip, given: Mapping[str, Json] = {}, *,
    fill: Mapping[str, str] = {}, **more: Any,
) -> WishedChange:  # fmt: skip
    arguments: Mapping[str, Json] = given if "user_id" in given else {"reservation_id": trip.key, **given}
    words = {"trip": f"reservation {trip.key}", **fill}
    return wished(operation, trip.key, arguments, parts.called(draft, trip), fill=words, **more)


def plain(operation: Operation, trip: Trip, amount: int, **given: Json) -> WishedChange:
    """A wish about a trip that was named already, at an amount."""
    words = {"it": "it", "trip": f"reservation {trip.key}", "money": dollars(amount)}
    return WishedChange(operation, trip.key, given or {"reservation_id": trip.key}, words)


def _cancel(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange:
    why = draft.say("why not fly") if draft.rng.random() < 0.4 else ""
    return _about(operation, draft, trip, amount=trip.paid, said=why)


def _move(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    """The cheapest flight of another day; which one it is does not matter where no other flight is allowed."""
    day = draft.rng.choice([day for day in DAYS if day > TODAY and day != trip.flight.date])
    new = parts.cheapest_alone(trip.found.cabin, parts.able_on(draft, trip, day))
    return moving(operation, draft, trip, day, new)


def moving(operation: Operation, draft: StoryDraft, trip: Trip, day: str, new: Flight | None) -> WishedChange:
    cost = Trip(trip.found, new).priced(trip.found.cabin) - trip.paid if new else 0
    given: Mapping[str, Json] = {"new_flight_id": new.flight_id if new else ""}
    fill, reads = {"there": f"the cheapest flight on {day}", "day": day}, (parts.search(trip.flight, day),)
    return _about(operation, draft, trip, given, fill=fill, amount=cost, reads=reads)


def _other_day(draft: StoryDraft, wish: WishedChange) -> WishedChange | None:
    found: Reservation = draft.db.get("reservations", wish.subject)
    trip = Trip(found, draft.db.get("flights", found.flight_id))
    other = _move(wish.operation, draft, trip)
    return None if other is None or other.fill["day"] == wish.fill["day"] else other._replace(find=wish.find)


def _reroute(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    other = draft.rng.choice([name for name in AIRPORTS if name not in trip.flight.route])
    return _about(operation, draft, trip, fill={"place": other}) if trip.found.cabin != "basic" else None


def _to(cabin: str) -> Callable[[Operation, StoryDraft, Trip], WishedChange | None]:
    """Another cabin: a dearer one, or a cheaper one."""

    def draw(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
        cost = trip.priced(cabin) - trip.paid
        if trip.found.cabin == cabin or (
            cabin == "economy" and (trip.found.cabin != "business" or cost >= 0)
        ):
            return None
        given: Mapping[str, Json] = {"cabin": cabin}
        return _about(operation, draft, trip, given, amount=cost)

    return draw


def _bags(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange:
    return packing(operation, draft, trip, draft.rng.randint(1, 4))


def packing(operation: Operation, draft: StoryDraft, trip: Trip, bags: int) -> WishedChange:
    paid = paid_bags(draft.db.get("users", trip.found.user_id), trip.found, bags)
    given: Mapping[str, Json] = {"bags": bags, "paid_bags": paid}
    fill, reads = {"many": counted(bags, "bag")}, (parts.account(draft),)
    return _about(operation, draft, trip, given, fill=fill, amount=BAG_PRICE * paid, reads=reads)


def _rename(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    if len(trip.found.passengers) < 2:
        return None
    old = trip.found.passengers[1]
    last = draft.rng.choice([name for name in world_words().last if name not in old])
    return _about(operation, draft, trip, {"old_name": old, "new_name": f"{old.split()[0]} {last}"})


def _claim(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    """Compensation; now and then for a flight that is thought to be late, and is not."""
    late = trip.flight.status in ("delayed", "cancelled")
    if not late and (trip.flight.status == "flown" or draft.rng.random() < 0.6):
        return None
    amount = compensation(parts.me(draft), trip)
    status = trip.flight.status if late else "delayed"
    said = draft.say("hears of delay", status=status) if draft.rng.random() < 0.6 else ""
    given, reads = {"user_id": draft.customer, "amount_dollars": amount}, (parts.account(draft),)
    return _about(operation, draft, trip, given, amount=100 * amount, reads=reads, said=said)


def _meal(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    given: Mapping[str, Json] = {"meal": draft.rng.choice(MEALS)}
    if trip.found.meal or trip.flight.status == "cancelled":
        return None
    return _about(operation, draft, trip, given, amount=trip.found.meal_price)


def _insure(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    amount = trip.found.insurance_price
    return None if trip.found.insured else _about(operation, draft, trip, amount=amount)


# --- the changes -------------------------------------------------------------------------------------

_CHANGES = ChangeTable("turnwise.envs.toolworld.airline", DESK)


def _change(
    name: str, tool: str, draw: Callable[[Operation, StoryDraft, Trip], WishedChange | None], may: Mapping[str, Kept] = {}, **more: Any
) -> Operation:  # fmt: skip
    """A change of a trip, with the rules that it has beside those of all."""
    return _CHANGES.operation(name, tool, trips, draw, {**_RULES, **may}, **more)


CANCEL = _change("cancel", "cancel_reservation", _cancel, {"cancellation_rules": _of_trip(lambda db, trip, given: may_cancel(trip))})  # fmt: skip
MOVE = _change(
    "move", "change_flight", _move, {"basic_fare": _of_trip(lambda db, trip, given: trip.found.cabin != "basic")}, rethink=_other_day
)  # fmt: skip
UPGRADE = _change("upgrade", "change_cabin", _to("business"))
DOWNGRADE = _change("downgrade", "change_cabin", _to("economy"))
BAGS = _change("bags", "add_bags", _bags, {"bag_fee": _BAG_FEE}, matches=("bags",))
RENAME = _change("name", "rename_passenger", _rename)
CLAIM = _CHANGES.operation(
    "compensate", "issue_certificate", trips, _claim, {"no_compensation": _is_owed}, read_for=("no_compensation",)
)  # fmt: skip
MEAL = _change("meal", "add_meal", _meal, shares=("meal",))
INSURE = _change(
    "insurance", "add_insurance", _insure, {"insurance_late": _of_trip(lambda db, trip, given: trip.flight.status not in ("delayed", "cancelled"))}
)  # fmt: skip
ROUTE = _change("route", "", _reroute, {"route_change": never})
MORE = _change("more", "", _about, {"passenger_number": never})
FEWER = _CHANGES.operation(
    "fewer", "", lambda draft, own: [trip for trip in trips(draft, own) if len(trip.found.passengers) > 1], _about, MORE.may
)  # fmt: skip
OPERATIONS = (CANCEL, MOVE, UPGRADE, DOWNGRADE, BAGS, RENAME, CLAIM, MEAL, INSURE, ROUTE, MORE, FEWER)
