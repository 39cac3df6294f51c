"""Wishes of the airline's customers for several trips, or for one in two ways: for one that must be found,
for all, for both."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.airline import operations as changes
from turnwise.envs.toolworld.airline import parts
from turnwise.envs.toolworld.airline.parts import Trip
from turnwise.envs.toolworld.airline.state import CABINS, DAYS, TODAY, Flight
from turnwise.envs.toolworld.alternatives import (
    SeveralSubjects,
    WishPart,
    both,
    each,
    joined,
    one,
    part,
    then,
)
from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.operations import WishedChange, accepted, wanted
from turnwise.envs.toolworld.story import Stage, ask, call, confirmed
from turnwise.envs.toolworld.vocabulary import world_words

MEASURES = (
    ("leaves first", lambda trip: trip.flight.date + trip.flight.departs, False),
    ("leaves last", lambda trip: trip.flight.date + trip.flight.departs, True),
    ("cost most in all", lambda trip: trip.paid, True),
    ("cost least in all", lambda trip: trip.paid, False),
)
EXTRAS = (changes.BAGS, changes.MEAL, changes.INSURE)
WHOLE = (*EXTRAS, changes.RENAME, changes.UPGRADE)  # what can be done with a trip that stays as it is


def ahead(draft: StoryDraft) -> SeveralSubjects:
    return SeveralSubjects(
        parts.coming(draft), draft.ways("coming trips"), MEASURES, parts.look_at_all(draft)
    )


def whichever(draft: StoryDraft) -> Stage:
    """Only those trips for which the rules allow it, or which lack it."""
    trips = parts.coming(draft)
    operation, fits, name = draft.rng.choice((
        (changes.CANCEL, changes.may_cancel, "every one that your rules let me cancel"),
        (changes.INSURE, lambda trip: not trip.found.insured, "every one that has no insurance yet"),
    ))  # fmt: skip
    chosen = [trip for trip in trips if fits(trip)]
    fitting(len(chosen) < len(trips))
    wishes = fitting(each(draft, operation, chosen))
    made = part(draft, wishes[0]._replace(said="").named(it=name), *wishes[1:])
    say = draft.say("whichever trips", among=draft.say("coming trips"), do=made.say)
    return one(say, parts.look_at_all(draft), made)


# --- two things --------------------------------------------------------------------------------------


def two_for_one(draft: StoryDraft) -> Stage:
    """Two things for one trip."""
    found, operations = parts.some_trip(draft, lambda trip: trip.runs), draft.rng.sample(WHOLE, 2)
    # else what they cost would depend on which comes first
    fitting(changes.UPGRADE not in operations or not {changes.MEAL, changes.BAGS} & {*operations})
    trip = fitting(found)
    first = wanted(draft, operations[0], trip)
    second = then(draft, first, operations[1], [trip])
    return both(draft, parts.DESK.verify(draft), first, fitting(second), "the same trip")


def two_trips(draft: StoryDraft) -> Stage:
    """Something for one trip, and something for another."""
    found: list[WishedChange] = []
    for _ in range(2):
        trip = fitting(parts.some_trip(draft, lambda trip: trip.runs))
        wish = wanted(draft, draft.rng.choice((*WHOLE, changes.CANCEL)), trip)
        found.append(wish.named(it=f"reservation {trip.key}")._replace(find=()))
    return both(draft, parts.DESK.verify(draft), found[0], found[1])


def move_and(draft: StoryDraft) -> Stage:
    """Another day, and something for the trip."""
    trip = fitting(parts.some_trip(draft, lambda trip: trip.flight.status == "scheduled"))
    first = wanted(draft, changes.MOVE, trip)
    after = draft.after(first.call).get("reservations", trip.key)
    moved = Trip(after, draft.db.get("flights", after.flight_id))
    second = then(draft, first, draft.rng.choice(EXTRAS), [moved])
    return both(draft, parts.DESK.verify(draft), first, fitting(second), "it")


def cancel_and_claim(draft: StoryDraft) -> Stage:
    """A refund and compensation for a flight that the airline cancelled."""
    user = parts.me(draft)
    trip = fitting(
        parts.some_trip(
            draft, lambda trip: trip.flight.status == "cancelled" and changes.compensation(user, trip) > 0
        )
    )
    first, second = wanted(draft, changes.CANCEL, trip), wanted(draft, changes.CLAIM, trip)
    return both(draft, parts.DESK.verify(draft), first, second, "the flight that you cancelled")


# --- bookings ----------------------------------------------------------------------------------------


def _booking(draft: StoryDraft, flight: Flight, cabin: str, passenger: str, say: str = "") -> WishPart:
    price, key = flight.prices[CABINS.index(cabin)], flight.flight_id
    write = call("book_flight", user_id=draft.customer, flight_id=key, cabin=cabin, passengers=[passenger])
    steps = confirmed(f"book flight {key} in {cabin} for {passenger} at {dollars(price)} in total", write)
    report, tells = f"The new booking costs {dollars(price)}.", (Fact("money", str(price)),)
    return WishPart(say, steps, report, tells, "What does the new booking cost?")


def book(draft: StoryDraft) -> Stage:
    """The cheapest seat on a day."""
    flights: list[Flight] = [
        f for f in draft.db.rows("flights") if f.status == "scheduled" and f.date > TODAY and f.seats[1] > 0
    ]
    wish = fitting(draft.free(flights, lambda f: f"{f.origin}{f.destination}{f.date}"))
    fitting(parts.books_for(draft, parts.ALONE))
    like = [flight for flight in flights if (flight.route, flight.date) == (wish.route, wish.date)]
    new = fitting(parts.cheapest_alone("economy", sorted(like, key=lambda flight: flight.prices[1])))
    say = draft.say("cheapest seat", origin=wish.origin, destination=wish.destination, day=wish.date)
    asked = draft.say("not delayed")
    who = ask("Who will be travelling?", "passengers")
    look = (*parts.DESK.verify(draft), parts.account(draft), parts.search(wish, wish.date), who)
    return one(f"{say} {asked}", look, _booking(draft, new, "economy", parts.me(draft).name))


def cancel_and_book(draft: StoryDraft) -> Stage:
    """One trip given up, and a new one of the same route on another day."""
    trip = fitting(parts.some_trip(draft, changes.may_cancel))
    first = wanted(draft, changes.CANCEL, trip)
    name = parts.me(draft).name
    day = draft.rng.choice([day for day in DAYS if day > TODAY and day != trip.flight.date])
    single = trip._replace(found=trip.found._replace(cabin="economy", passengers=(name,)))
    new = fitting(parts.cheapest_alone("economy", parts.able_on(draft, single, day)))
    key = f"{trip.flight.origin}{trip.flight.destination}{day}"
    fitting(key not in draft.used and parts.books_for(draft, parts.ALONE))
    draft.used.add(key)  # as a booking of its own does: nobody books the same twice
    second = draft.say("book the same route", day=day)
    look = (*parts.DESK.verify(draft), *first.looks, parts.account(draft), parts.search(trip.flight, day))
    return joined(
        draft, look, part(draft, first._replace(said="")), _booking(draft, new, "economy", name, second)
    )


def book_beside(draft: StoryDraft) -> Stage:
    """A booking for somebody else on the flight of a trip."""
    found = parts.some_trip(
        draft, lambda trip: trip.flight.status == "scheduled" and trip.flight.seats[trip.place] > 0
    )
    names = world_words()
    who = f"{draft.rng.choice(names.first)} {draft.rng.choice(names.last)}"
    trip = fitting(found)
    fitting(parts.books_for(draft, f"The passenger is {who}."))
    draft.used.add(trip.key)
    name = parts.looked_at(draft, trip)
    say = draft.say("book beside", who=who, it=name.it)
    return one(say, name.find, _booking(draft, trip.flight, trip.found.cabin, who))


def cheaper_day(draft: StoryDraft) -> Stage:
    """The cheapest flight of two days."""
    trip = fitting(parts.some_trip(draft, lambda trip: trip.found.cabin != "basic" and trip.runs))
    day, other = sorted(draft.rng.sample([day for day in DAYS if day > TODAY and day != trip.flight.date], 2))
    able = [parts.able_on(draft, trip, day) for day in (day, other)]
    flights = sorted((f for flights in able for f in flights), key=lambda flight: flight.prices[trip.place])
    new = fitting(parts.cheapest_alone(trip.found.cabin, flights) if all(able) else None)
    wish = accepted(draft, changes.moving(changes.MOVE, draft, trip, day, new))
    name = parts.looked_at(draft, trip)
    say = draft.say("cheaper day", it=name.it, day=day, other=other)
    look = (*name.find, parts.search(trip.flight, day), parts.search(trip.flight, other))
    return one(say, look, part(draft, wish))


SEVERAL: tuple[Callable[[StoryDraft], Stage | None], ...] = (
    whichever, cheaper_day, two_for_one, two_trips, move_and, cancel_and_claim, book, cancel_and_book, book_beside,
)  # fmt: skip
