"""Questions of the airline's customers."""

from __future__ import annotations

from turnwise.envs.toolworld.airline.parts import DESK, Fits, Trip, account, looked_at, some_trip
from turnwise.envs.toolworld.airline.state import CABINS, TODAY, Flight
from turnwise.envs.toolworld.alternatives import Lookup, question
from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.operations import Called
from turnwise.envs.toolworld.story import Stage, call

STATUSES = ("scheduled", "flown", "delayed", "cancelled")


def _trip(draft: StoryDraft, fits: Fits) -> tuple[Trip, Called]:
    """One of the customer's trips that is asked about, and how it is called and read."""
    trip = fitting(some_trip(draft, fits))
    draft.used.add(trip.key)
    return trip, looked_at(draft, trip)


def status(draft: StoryDraft) -> Stage:
    trip, name = _trip(draft, lambda trip: trip.flight.status != "flown")
    what = (f"the status of the flight of {name.it}",)
    known = Lookup(what, "word", trip.flight.status, "The flight is {}.", choices=STATUSES)
    return question(draft, known, name.find)


def departure_of(trip: Trip, it: str) -> Lookup:
    return Lookup((f"the time of departure of {it}",), "time", trip.flight.departs, "It leaves at {}.")


def departure(draft: StoryDraft) -> Stage:
    trip, name = _trip(draft, lambda trip: trip.flight.date > TODAY)
    return question(draft, departure_of(trip, name.it), name.find)


def of_flight(draft: StoryDraft, *, price: bool) -> Stage:
    """Something about a cabin of a flight that runs: its price, or how many seats it has."""
    able: list[Flight] = [f for f in draft.db.rows("flights") if f.status == "scheduled" and f.date > TODAY]
    flight = fitting(draft.free(able, lambda f: f.flight_id))
    place, cabin = draft.rng.choice([*enumerate(CABINS)])
    fare = f"the {cabin} fare of flight {flight.flight_id}"
    seats = f"the number of seats left in {cabin} on flight {flight.flight_id}"
    known = Lookup((seats,), "count", flight.seats[place], f"There are {{}} seats left in {cabin}.")
    if price:
        known = Lookup((fare,), "money", flight.prices[place], "It costs {}.")
    return question(draft, known, (call("get_flight", flight_id=flight.flight_id),))


def credit(draft: StoryDraft) -> Stage:
    fitting(not draft.used)
    amount, topics = 5000 * draft.rng.randint(1, 8), frozenset(("credit",))
    draft.override("users", draft.customer, credit=amount)
    known = Lookup(draft.ways("credit"), "money", amount, "You have {} of credit.", topics=topics)
    return question(draft, known, (*DESK.verify(draft), account(draft)))
