"""Changes that the airline can make for its customers: how each is asked for, offered and reported, and when
it is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from turnwise.envs.toolworld.airline.parts import (
    DESK,
    Trip,
    able_on,
    called,
    cheapest_alone,
    me,
    new_surname,
    search,
    trips,
)
from turnwise.envs.toolworld.airline.state import (
    AIRPORTS,
    BAG_PRICE,
    CABINS,
    DAYS,
    FREE_BAGS,
    INSURANCE_PRICE,
    MEAL_PRICE,
    TODAY,
    AirlineCustomer,
    Flight,
    Reservation,
)
from turnwise.envs.toolworld.database import Database
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import Kept, Operation, WishedChange, about, never, owned, wished
from turnwise.envs.toolworld.story import PlanStep, call
from turnwise.envs.toolworld.vocabulary import counted
from turnwise.tasks.core import Json

SECTIONS = {
    "not_owner": "1.1", "flown": "4.3, 5.5", "cancellation_rules": "4.2", "basic_fare": "5.1", "route_change": "5.2",
    "passenger_number": "5.4", "insurance_late": "6.4", "no_compensation": "7.1",
}  # fmt: skip
"""Rule → where the policy has it, in the order in which the policy takes them."""
REFUND = ("How much will be refunded?", "What do I get back?", "What amount comes back to me?", "How much money will I see again?")  # fmt: skip
PRICE = ("What does it cost in total?", "What is that in all?", "How much is it altogether?", "What do I pay for it, all in all?")  # fmt: skip
AMOUNT = ("How much do I get?", "What will the amount be?", "How high is it?", "What sum is it?")
REASONS = (
    "My plans have changed.",
    "I feel unwell.",
    "My meeting was called off.",
    "Something came up at home.",
)
"""Why somebody does not fly, which changes nothing."""
MEALS = ("vegetarian", "vegan", "kosher", "halal")
AGAIN = "What amount is that?"


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
    return wished(operation, trip.key, arguments, called(draft, trip), fill=words, **more)


def _cancel(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange:
    why = draft.words(*REASONS) if draft.rng.random() < 0.4 else ""
    return _about(operation, draft, trip, amount=trip.paid, said=why)


def _move(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    """The cheapest flight of another day; which one it is does not matter where no other flight is allowed."""
    day = draft.rng.choice([day for day in DAYS if day > TODAY and day != trip.flight.date])
    new = cheapest_alone(trip.found.cabin, able_on(draft, trip, day))
    return moving(operation, draft, trip, day, new)


def moving(operation: Operation, draft: StoryDraft, trip: Trip, day: str, new: Flight | None) -> WishedChange:
    cost = Trip(trip.found, new).priced(trip.found.cabin) - trip.paid if new else 0
    given: Mapping[str, Json] = {"new_flight_id": new.flight_id if new else ""}
    fill, reads = {"there": f"the cheapest flight on {day}", "day": day}, (search(trip.flight, day),)
    return _about(operation, draft, trip, given, fill=fill, amount=cost, reads=reads)


def _other_day(draft: StoryDraft, wish: WishedChange) -> WishedChange | None:
    found: Reservation = draft.db.get("reservations", wish.subject)
    trip = Trip(found, draft.db.get("flights", found.flight_id))
    other = _move(wish.operation, draft, trip)
    return None if other is None or other.fill["day"] == wish.fill["day"] else other._replace(find=wish.find)


def _reroute(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    other = draft.rng.choice(
        [name for name in AIRPORTS if name not in (trip.flight.origin, trip.flight.destination)]
    )
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


def _account(draft: StoryDraft) -> tuple[PlanStep, ...]:
    return (call("get_customer", user_id=draft.customer),)


def _bags(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange:
    return packing(operation, draft, trip, draft.rng.randint(1, 4))


def packing(operation: Operation, draft: StoryDraft, trip: Trip, bags: int) -> WishedChange:
    paid = paid_bags(draft.db.get("users", trip.found.user_id), trip.found, bags)
    given: Mapping[str, Json] = {"bags": bags, "paid_bags": paid}
    fill = {"many": counted(bags, "bag")}
    return _about(operation, draft, trip, given, fill=fill, amount=BAG_PRICE * paid, reads=_account(draft))


def _rename(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    if len(trip.found.passengers) < 2:
        return None
    old = trip.found.passengers[1]
    return _about(operation, draft, trip, {"old_name": old, "new_name": new_surname(draft, old)})


def _claim(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    """Compensation; now and then for a flight that is thought to be late, and is not."""
    late = trip.flight.status in ("delayed", "cancelled")
    if not late and (trip.flight.status == "flown" or draft.rng.random() < 0.6):
        return None
    amount = compensation(me(draft), trip)
    status = trip.flight.status if late else "delayed"
    said = draft.words(
        f"Its flight is {status}.", f"I hear that its flight is {status}.", f"That flight is {status}, isn't it.", f"You say that the flight is {status}.",
    ) if draft.rng.random() < 0.6 else ""  # fmt: skip
    given: Mapping[str, Json] = {"user_id": draft.customer, "amount_dollars": amount}
    return _about(operation, draft, trip, given, amount=100 * amount, reads=_account(draft), said=said)


def _meal(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    cost = 0 if trip.found.cabin == "business" else MEAL_PRICE * len(trip.found.passengers)
    given: Mapping[str, Json] = {"meal": draft.rng.choice(MEALS)}
    if trip.found.meal or trip.flight.status == "cancelled":
        return None
    return _about(operation, draft, trip, given, amount=cost)


def _insure(operation: Operation, draft: StoryDraft, trip: Trip) -> WishedChange | None:
    cost = INSURANCE_PRICE * len(trip.found.passengers)
    return None if trip.found.insured else _about(operation, draft, trip, amount=cost)


# --- the changes -------------------------------------------------------------------------------------

CANCEL = Operation(
    "cancel", "cancel_reservation",
    ("cancel {it}", "call off {it}", "void {it}", "have {it} cancelled", "terminate {it}", "annul {it}", "scrap {it}", "undo {it}"),
    "cancel {trip} and refund {money} in total", "{trip} is cancelled; {money} will be refunded.",
    {**_RULES, "cancellation_rules": _of_trip(lambda db, trip, given: may_cancel(trip))},
    trips, _cancel, DESK, REFUND, AGAIN,
)  # fmt: skip
MOVE = Operation(
    "move", "change_flight",
    ("move {it} to {there}", "put {it} on {there}", "rebook {it} to {there}", "change {it} to {there}", "switch {it} to {there}", "transfer {it} to {there}"),
    "move {trip} to flight {new_flight_id}; the difference is {money} in total", "{trip} is moved to flight {new_flight_id}.",
    {**_RULES, "basic_fare": _of_trip(lambda db, trip, given: trip.found.cabin != "basic")},
    trips, _move, DESK, rethink=_other_day,
    second=("Hm, wait. Rather the cheapest one on {day}.", "Actually, make it {day}, the cheapest one.", "No, {day} suits me better. The cheapest of that day.",
            "I have looked again: the cheapest one on {day}, please."),
)  # fmt: skip
UPGRADE = Operation(
    "upgrade", "change_cabin",
    ("upgrade {it} to business", "move {it} to business class", "put {it} into business", "change {it} to business class", "give {it} an upgrade to business",
     "raise {it} to business class"),
    "upgrade {trip} to business for {money} in total", "{trip} is in business now, for {money}.",
    _RULES, trips, _to("business"), DESK, PRICE, AGAIN,
)  # fmt: skip
DOWNGRADE = Operation(
    "downgrade", "change_cabin",
    ("downgrade {it} to economy", "move {it} down to economy", "put {it} into economy", "change {it} to economy", "take {it} down to economy class", "switch {it} to economy"),
    "change {trip} to economy for {money} in total", "{trip} is in economy now; the difference is {money}.",
    _RULES, trips, _to("economy"), DESK, REFUND, AGAIN,
)  # fmt: skip
BAGS = Operation(
    "bags", "add_bags",
    ("add {many} to {it}", "register {many} for {it}", "check in {many} for {it}", "put {many} on {it}", "book {many} for {it}", "include {many} in {it}"),
    "add {many} to {trip}, {paid_bags} of them paid, {money} in total", "{many} more for {trip}; the price is {money}.",
    {**_RULES, "bag_fee": _BAG_FEE}, trips, _bags, DESK, PRICE, AGAIN, matches=("bags",),
)  # fmt: skip
RENAME = Operation(
    "name", "rename_passenger",
    ("correct the name {old_name} to {new_name} in {it}", "change the passenger name {old_name} to {new_name} in {it}", "write {new_name} instead of {old_name} in {it}",
     "replace the name {old_name} by {new_name} in {it}", "fix the name {old_name} in {it}, which should be {new_name}", "rename the passenger {old_name} to {new_name} in {it}"),
    "change the name {old_name} to {new_name} in {trip}, free of charge", "the name is changed to {new_name} in {trip}.",
    _RULES, trips, _rename, DESK,
)  # fmt: skip
CLAIM = Operation(
    "compensate", "issue_certificate",
    ("give me compensation for {it}", "compensate me for {it}", "issue a certificate as compensation for {it}", "grant me a compensation for {it}",
     "send me a compensation certificate for {it}", "credit me with a compensation for {it}"),
    "issue a certificate of {money} as compensation", "the certificate of {money} is issued as compensation.",
    {"no_compensation": _is_owed}, trips, _claim, DESK, AMOUNT, AGAIN, read_for=("no_compensation",),
)  # fmt: skip
MEAL = Operation(
    "meal", "add_meal",
    ("order {meal} meals for {it}", "book {meal} food for {it}", "request {meal} meals on {it}", "arrange {meal} food for {it}", "note {meal} meals for {it}", "add {meal} meals to {it}"),
    "order a {meal} meal for all passengers of {trip} for {money} in total", "the {meal} meal is ordered for {trip}; the price is {money}.",
    _RULES, trips, _meal, DESK, PRICE, AGAIN, shares=("meal",),
)  # fmt: skip
INSURE = Operation(
    "insurance", "add_insurance",
    ("insure {it}", "add insurance to {it}", "take out insurance for {it}", "have {it} insured", "put insurance on {it}", "get insurance for {it}"),
    "add insurance to {trip} for {money} in total", "the insurance is added to {trip}, for {money}.",
    {**_RULES, "insurance_late": _of_trip(lambda db, trip, given: trip.flight.status not in ("delayed", "cancelled"))},
    trips, _insure, DESK, PRICE, AGAIN,
)  # fmt: skip
ROUTE = Operation(
    "route", "",
    ("change the destination of {it} to {place}", "let {it} go to {place}, not where it goes now", "rebook {it} so that I land in {place}", "make {place} the destination of {it}"),
    "", "", {**_RULES, "route_change": never}, trips, _reroute, DESK,
)  # fmt: skip
MORE = Operation(
    "more", "",
    ("add my cousin to {it}", "put one more passenger into {it}", "add a friend who joins us to {it}", "add a seat to {it} for my wife", "add one more traveller to {it}"),
    "", "", {**_RULES, "passenger_number": never}, trips, _about, DESK,
)  # fmt: skip
FEWER = Operation(
    "fewer", "",
    ("take one passenger off {it}", "remove a traveller from {it} and refund the seat", "remove one of us from {it}", "take my friend's seat off {it}"),
    "", "", {**_RULES, "passenger_number": never},
    lambda draft, own: [trip for trip in trips(draft, own) if len(trip.found.passengers) > 1], _about, DESK,
)  # fmt: skip
OPERATIONS = (CANCEL, MOVE, UPGRADE, DOWNGRADE, BAGS, RENAME, CLAIM, MEAL, INSURE, ROUTE, MORE, FEWER)
