"""Wishes of the airline's customers for several trips, or for one in two ways: for one that must be found,
for all, for both."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.airline.operations import (
    BAGS,
    CANCEL,
    CLAIM,
    INSURE,
    MEAL,
    MOVE,
    RENAME,
    UPGRADE,
    compensation,
    may_cancel,
    moving,
)
from turnwise.envs.toolworld.airline.parts import (
    ALONE,
    DESK,
    RUNS,
    Trip,
    able_on,
    books_for,
    called,
    cheapest_alone,
    coming,
    look_at_all,
    me,
    search,
    some_trip,
)
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
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.operations import WishedChange, accept, wish_for
from turnwise.envs.toolworld.story import Stage, ask, call, confirmed, once
from turnwise.envs.toolworld.vocabulary import world_words

COMING = (
    "my trips that are still to come", "the trips of mine which have not taken place yet", "my trips that lie ahead",
    "my trips that I have not flown yet", "my trips that are not over yet", "the trips that I still have before me",
)  # fmt: skip
MEASURES = (
    ("leaves first", lambda trip: trip.flight.date + trip.flight.departs, False),
    ("leaves last", lambda trip: trip.flight.date + trip.flight.departs, True),
    ("cost most in all", lambda trip: trip.paid, True),
    ("cost least in all", lambda trip: trip.paid, False),
)
EXTRAS = (BAGS, MEAL, INSURE)
WHOLE = (*EXTRAS, RENAME, UPGRADE)  # what can be done with a trip that stays as it is


def ahead(draft: StoryDraft) -> SeveralSubjects:
    return SeveralSubjects(coming(draft), COMING, MEASURES, look_at_all(draft))


def whichever(draft: StoryDraft) -> Stage | None:
    """Only those trips for which the rules allow it, or which lack it."""
    trips = coming(draft)
    operation, fits, name = draft.rng.choice((
        (CANCEL, may_cancel, "every one that your rules let me cancel"),
        (INSURE, lambda trip: not trip.found.insured, "every one that has no insurance yet"),
    ))  # fmt: skip
    chosen = [trip for trip in trips if fits(trip)]
    wishes = each(draft, operation, chosen) if 0 < len(chosen) < len(trips) else ()
    if not wishes:
        return None
    made, among = part(draft, wishes[0]._replace(said="").named(it=name), *wishes[1:]), draft.words(*COMING)
    say = draft.words(
        f"Check {among}, and {made.say}. The others stay as they are.", f"I speak of {among}: {made.say}. Do nothing about the rest.",
        f"Of {among}, {made.say}. All others are to be left alone.", f"Go over {among} and {made.say}. Do not touch what is left.",
        f"Please see to {among}: {made.say}. Nothing is to happen to the remaining ones.",
        f"From {among}, please {made.say}. Whatever else there is shall remain unchanged.",
    )  # fmt: skip
    return one(say, look_at_all(draft), made)


# --- two things --------------------------------------------------------------------------------------


def two_for_one(draft: StoryDraft) -> Stage | None:
    """Two things for one trip."""
    trip = some_trip(draft, lambda trip: trip.flight.status in RUNS)
    operations = draft.rng.sample(WHOLE, 2)
    if UPGRADE in operations and {MEAL, BAGS} & {*operations}:
        return None  # what they cost would depend on which comes first
    first = wish_for(draft, operations[0], among=[trip]) if trip else None
    second = then(draft, first, operations[1], [trip]) if first else None
    return both(draft, DESK.verify(draft), first, second, "the same trip") if first and second else None


def two_trips(draft: StoryDraft) -> Stage | None:
    """Something for one trip, and something for another."""
    found: list[WishedChange] = []
    for _ in range(2):
        trip = some_trip(draft, lambda trip: trip.flight.status in RUNS)
        wish = wish_for(draft, draft.rng.choice((*WHOLE, CANCEL)), among=[trip]) if trip else None
        if trip is None or wish is None:
            return None
        found.append(wish.named(it=f"reservation {trip.key}")._replace(find=()))
    return both(draft, DESK.verify(draft), found[0], found[1])


def move_and(draft: StoryDraft) -> Stage | None:
    """Another day, and something for the trip."""
    trip = some_trip(draft, lambda trip: trip.flight.status == "scheduled")
    first = wish_for(draft, MOVE, among=[trip]) if trip else None
    if trip is None or first is None:
        return None
    after = draft.after(first.call).get("reservations", trip.key)
    moved = Trip(after, draft.db.get("flights", after.flight_id))
    second = then(draft, first, draft.rng.choice(EXTRAS), [moved])
    return both(draft, DESK.verify(draft), first, second, "it") if second else None


def cancel_and_claim(draft: StoryDraft) -> Stage | None:
    """A refund and compensation for a flight that the airline cancelled."""
    user = me(draft)
    trip = some_trip(draft, lambda trip: trip.flight.status == "cancelled" and compensation(user, trip) > 0)
    first = wish_for(draft, CANCEL, among=[trip]) if trip else None
    second = wish_for(draft, CLAIM, among=[trip]) if first else None
    return (
        both(draft, DESK.verify(draft), first, second, "the flight that you cancelled")
        if first and second
        else None
    )


# --- bookings ----------------------------------------------------------------------------------------


def _booking(draft: StoryDraft, flight: Flight, cabin: str, passenger: str, say: str = "") -> WishPart:
    price = flight.prices[CABINS.index(cabin)]
    write = call(
        "book_flight", user_id=draft.customer, flight_id=flight.flight_id, cabin=cabin, passengers=[passenger]
    )
    offer = f"book flight {flight.flight_id} in {cabin} for {passenger} at {dollars(price)} in total"
    tells = (Fact("money", str(price)),)
    return WishPart(
        say,
        confirmed(offer, write),
        f"The new booking costs {dollars(price)}.",
        tells,
        "What does the new booking cost?",
    )


def book(draft: StoryDraft) -> Stage | None:
    """The cheapest seat on a day."""
    flights: list[Flight] = [
        f for f in draft.db.rows("flights") if f.status == "scheduled" and f.date > TODAY and f.seats[1] > 0
    ]
    wish = draft.free(flights, lambda f: f"{f.origin}{f.destination}{f.date}")
    if wish is None or not books_for(draft, ALONE):
        return None
    ends, day = (wish.origin, wish.destination), wish.date
    like = sorted(
        (f for f in flights if (f.origin, f.destination) == ends and f.date == day), key=lambda f: f.prices[1]
    )
    if (new := cheapest_alone("economy", like)) is None:
        return None
    say = draft.words(
        f"Book me the cheapest economy seat from {ends[0]} to {ends[1]} on {day}.",
        f"I need to get from {ends[0]} to {ends[1]} on {day}, economy, as cheap as possible. Book it.",
        f"Find the cheapest economy ticket from {ends[0]} to {ends[1]} for {day} and book it for me.",
        f"A seat in economy, {ends[0]} to {ends[1]}, {day}, whichever is cheapest: please book it.",
    )
    asked = draft.words(
        "It must not be delayed. What do I pay?", "No delayed flight, please. What is the price?", "It has to be on time. How much is it?",
        "Only one that is not delayed. What will it cost?",
    )  # fmt: skip
    look = (
        *DESK.verify(draft),
        call("get_customer", user_id=draft.customer),
        search(wish, day),
        ask("Who will be travelling?", "passengers"),
    )
    return one(f"{say} {asked}", look, _booking(draft, new, "economy", me(draft).name))


def cancel_and_book(draft: StoryDraft) -> Stage | None:
    """One trip given up, and a new one of the same route on another day."""
    trip = some_trip(draft, may_cancel)
    first = wish_for(draft, CANCEL, among=[trip]) if trip else None
    if trip is None or first is None:
        return None
    name = me(draft).name
    day = draft.rng.choice([day for day in DAYS if day > TODAY and day != trip.flight.date])
    single = trip._replace(found=trip.found._replace(cabin="economy", passengers=(name,)))
    new = cheapest_alone("economy", able_on(draft, single, day))
    key = f"{trip.flight.origin}{trip.flight.destination}{day}"
    if new is None or key in draft.used or not books_for(draft, ALONE):
        return None
    draft.used.add(key)  # as a booking of its own does: nobody books the same twice
    second = draft.words(
        f"book me alone the cheapest economy seat of the same route on {day}, and tell me its price",
        f"reserve for me alone the cheapest seat in economy between the same airports on {day}, and name the price",
        f"buy a single economy ticket in my name for the cheapest flight of that route on {day}, and say what it costs",
        f"find the cheapest economy flight from and to the same places on {day} and book it for me only; what does it cost",
        f"book an economy seat for me on the cheapest flight of just that route on {day}, and let me know the price",
        f"make a new booking in economy, the cheapest on {day} for the same route, only for me, and tell me what I pay",
    )
    look = once(
        (
            *DESK.verify(draft),
            *first.looks,
            call("get_customer", user_id=draft.customer),
            search(trip.flight, day),
        )
    )
    return joined(
        draft, look, part(draft, first._replace(said="")), _booking(draft, new, "economy", name, second)
    )


def book_beside(draft: StoryDraft) -> Stage | None:
    """A booking for somebody else on the flight of a trip."""
    trip = some_trip(
        draft,
        lambda trip: (
            trip.flight.status == "scheduled" and trip.flight.seats[CABINS.index(trip.found.cabin)] > 0
        ),
    )
    names = world_words()
    who = f"{draft.rng.choice(names.first)} {draft.rng.choice(names.last)}"
    if trip is None or not books_for(draft, f"The passenger is {who}."):
        return None
    draft.used.add(trip.key)
    name = called(draft, trip)
    say = draft.words(
        f"Book a separate seat for {who} on the flight of {name.it}, in the same cabin. What does it cost?",
        f"My friend {who} needs the same flight and also the same cabin as {name.it}: make a booking of its own. How much is it?",
        f"Please make an additional booking for {who} that is like {name.it} in flight and cabin. What is the price?",
        f"Make a reservation of its own for {who}: same plane and same cabin as {name.it}. What will I pay?",
        f"Apart from {name.it}, I need a booking for {who} on that very flight and in that cabin. Tell me the price.",
        f"Take flight and cabin from {name.it} and book them once again, for {who} only. What do you charge?",
    )
    look = (*DESK.verify(draft), *name.find, call("get_reservation", reservation_id=trip.key))
    return one(say, look, _booking(draft, trip.flight, trip.found.cabin, who))


def cheaper_day(draft: StoryDraft) -> Stage | None:
    """The cheapest flight of two days."""
    trip = some_trip(draft, lambda trip: trip.found.cabin != "basic" and trip.flight.status in RUNS)
    if trip is None:
        return None
    day, other = sorted(draft.rng.sample([day for day in DAYS if day > TODAY and day != trip.flight.date], 2))
    able = [able_on(draft, trip, day) for day in (day, other)]
    place = CABINS.index(trip.found.cabin)
    new = cheapest_alone(
        trip.found.cabin, sorted((f for flights in able for f in flights), key=lambda f: f.prices[place])
    )
    wish = moving(MOVE, draft, trip, day, new) if all(able) and new else None
    if wish is None or not accept(draft, wish):
        return None
    name = called(draft, trip)
    say = draft.words(
        f"Move {name.it} to {day} or {other}, whichever of the two days has the cheaper flight.",
        f"I can travel on {day} or on {other} instead: put {name.it} on the cheapest flight of both days.",
        f"Compare {day} with {other}, and rebook {name.it} to the flight that costs least on these two days.",
        f"Either {day} or {other} suits me for {name.it}; change it to the cheapest flight that you find on them.",
        f"Change {name.it} to the cheapest flight there is on {day} and {other} taken together.",
        f"Would you look at {day} and {other}, and switch {name.it} to the least expensive flight of the two days?",
    )
    reads = (
        call("get_reservation", reservation_id=trip.key),
        search(trip.flight, day),
        search(trip.flight, other),
    )
    made = part(draft, wish)
    return one(say, (*DESK.verify(draft), *name.find, *reads), made)


SEVERAL: tuple[Callable[[StoryDraft], Stage | None], ...] = (
    whichever, cheaper_day, two_for_one, two_trips, move_and, cancel_and_claim, book, cancel_and_book, book_beside,
)  # fmt: skip
