"""Questions of the airline's customers."""

from __future__ import annotations

from turnwise.envs.toolworld.airline.parts import DESK, Fits, Trip, called, some_trip
from turnwise.envs.toolworld.airline.state import CABINS, TODAY, Flight
from turnwise.envs.toolworld.alternatives import Lookup, question
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import PlanStep, Stage, call

STATUSES = ("scheduled", "flown", "delayed", "cancelled")


def _trip(draft: StoryDraft, fits: Fits) -> tuple[Trip, str, tuple[PlanStep, ...]] | None:
    """One of the customer's trips, how it is called, and the steps until it is read."""
    trip = some_trip(draft, fits)
    if trip is None:
        return None
    draft.used.add(trip.key)
    name = called(draft, trip)
    return trip, name.it, (*DESK.verify(draft), *name.find, call("get_reservation", reservation_id=trip.key))


def status(draft: StoryDraft) -> Stage | None:
    found = _trip(draft, lambda trip: trip.flight.status != "flown")
    if found is None:
        return None
    trip, it, look = found
    what = (f"the status of the flight of {it}",)
    return question(
        draft, Lookup(what, "word", trip.flight.status, "The flight is {}.", choices=STATUSES), look
    )


def departure_of(trip: Trip, it: str) -> Lookup:
    return Lookup((f"the time of departure of {it}",), "time", trip.flight.departs, "It leaves at {}.")


def departure(draft: StoryDraft) -> Stage | None:
    found = _trip(draft, lambda trip: trip.flight.date > TODAY)
    return question(draft, departure_of(found[0], found[1]), found[2]) if found else None


def _of_flight(draft: StoryDraft, *, price: bool) -> Stage | None:
    """Something about a cabin of a flight that runs."""
    able: list[Flight] = [f for f in draft.db.rows("flights") if f.status == "scheduled" and f.date > TODAY]
    flight = draft.free(able, lambda f: f.flight_id)
    if flight is None:
        return None
    place, cabin = draft.rng.choice([*enumerate(CABINS)])
    if price:
        known = Lookup(
            (f"the {cabin} fare of flight {flight.flight_id}",), "money", flight.prices[place], "It costs {}."
        )
    else:
        what = (f"the number of seats left in {cabin} on flight {flight.flight_id}",)
        known = Lookup(what, "count", flight.seats[place], f"There are {{}} seats left in {cabin}.")
    return question(draft, known, (call("get_flight", flight_id=flight.flight_id),))


def seats(draft: StoryDraft) -> Stage | None:
    return _of_flight(draft, price=False)


def fare(draft: StoryDraft) -> Stage | None:
    return _of_flight(draft, price=True)


def credit(draft: StoryDraft) -> Stage | None:
    if draft.used:
        return None
    amount = 5000 * draft.rng.randint(1, 8)
    draft.override("users", draft.customer, credit=amount)
    what = (
        "the credit that I have in certificates", "the worth of the certificates in my account", "the credit in my account", "the sum of my certificates",
    )  # fmt: skip
    known = Lookup(what, "money", amount, "You have {} of credit.", topics=frozenset(("credit",)))
    return question(draft, known, (*DESK.verify(draft), call("get_customer", user_id=draft.customer)))
