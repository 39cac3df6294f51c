"""What the airline's customers want to know."""

from __future__ import annotations

from turnwise.envs.toolworld.airline.parts import DESK, Fits, Trip, called, some_trip
from turnwise.envs.toolworld.airline.state import TODAY, Flight
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell
from turnwise.envs.toolworld.vocabulary import with_article

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
    say = draft.words(
        f"Is the flight of {it} on time? What is its status?", f"I heard of problems. What is the status of the flight of {it}?",
        f"Tell me the status of the flight of {it}.", f"How do things look for {it}: what is the status of its flight?",
    )  # fmt: skip
    fact, again = Fact("word", trip.flight.status, STATUSES), f"What is the status of the flight of {it}?"
    return Stage(say, (*look, tell(f"The flight is {trip.flight.status}.")), (fact,), again=again)


def departure(draft: StoryDraft) -> Stage | None:
    found = _trip(draft, lambda trip: trip.flight.date > TODAY)
    if found is None:
        return None
    trip, it, look = found
    say = draft.words(
        f"At what time does the flight of {it} leave?", f"When exactly do I take off on {it}? I need the time of day.",
        f"Tell me the time of departure of {it}.", f"What is the time of departure on {it}?",
    )  # fmt: skip
    fact = Fact("time", trip.flight.departs)
    return Stage(
        say,
        (*look, tell(f"It leaves at {trip.flight.departs}.")),
        (fact,),
        again=f"At what time does {it} leave?",
    )


def _flight(draft: StoryDraft) -> Flight | None:
    able: list[Flight] = [f for f in draft.db.rows("flights") if f.status == "scheduled" and f.date > TODAY]
    return draft.free(able, lambda f: f.flight_id)


def seats(draft: StoryDraft) -> Stage | None:
    flight = _flight(draft)
    if flight is None:
        return None
    place, cabin = draft.rng.choice(((0, "basic"), (1, "economy"), (2, "business")))
    name = flight.flight_id
    say = draft.words(
        f"How many seats are left in {cabin} on flight {name}?", f"On flight {name}, how many {cabin} seats are free?",
        f"Tell me how many {cabin} seats flight {name} still has.", f"Flight {name}: how many places are there in {cabin}?",
    )  # fmt: skip
    left = flight.seats[place]
    plan = (call("get_flight", flight_id=name), tell(f"There are {left} seats left in {cabin}."))
    return Stage(say, plan, (Fact("count", str(left)),), again=f"How many {cabin} seats are left?")


def fare(draft: StoryDraft) -> Stage | None:
    flight = _flight(draft)
    if flight is None:
        return None
    place, cabin = draft.rng.choice(((0, "basic"), (1, "economy"), (2, "business")))
    price, name = flight.prices[place], flight.flight_id
    say = draft.words(
        f"What does {with_article(cabin)} seat on flight {name} cost?", f"How much is {cabin} on flight {name}?",
        f"I want to know the {cabin} price of flight {name}.", f"Flight {name} in {cabin}: what is the fare?",
    )  # fmt: skip
    plan = (call("get_flight", flight_id=name), tell(f"It costs {dollars(price)}."))
    return Stage(say, plan, (Fact("money", str(price)),), again=f"What does {cabin} cost on that flight?")


def credit(draft: StoryDraft) -> Stage | None:
    if draft.used:
        return None
    draft.used.add("credit")
    amount = 5000 * draft.rng.randint(1, 8)
    draft.override("users", draft.customer, credit=amount)
    say = draft.words(
        "How much credit do I have in certificates?", "What are the certificates in my account worth?",
        "I once got a certificate from you. How much credit is there for me?", "Tell me the credit of my account, please.",
    )  # fmt: skip
    plan = (
        *DESK.verify(draft),
        call("get_customer", user_id=draft.customer),
        tell(f"You have {dollars(amount)} of credit."),
    )
    return Stage(say, plan, (Fact("money", str(amount)),), again="How much credit do I have?")
