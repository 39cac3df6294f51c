"""What the airline's customers want of several trips, or of one in two ways: of one that must be found, of all, of both."""

from __future__ import annotations

from collections.abc import Sequence

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
from turnwise.envs.toolworld.alternatives import WishPart, confirmed, joined
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.operations import (
    AMONG,
    REGARDING,
    WishedChange,
    each,
    once,
    one,
    part,
    sentence,
    the_one,
    then,
    wish_for,
)
from turnwise.envs.toolworld.story import Stage, ask, call
from turnwise.envs.toolworld.vocabulary import FIRST, LAST

COMING = (
    "my trips that are still to come", "the trips of mine which have not taken place yet", "my trips that lie ahead",
    "my trips that I have not flown yet", "my trips that are not over yet", "the trips that I still have before me",
)  # fmt: skip
EXTRAS = (BAGS, MEAL, INSURE)
WHOLE = (*EXTRAS, RENAME, UPGRADE)  # what can be done with a trip that stays as it is


def _silent(wish: WishedChange) -> WishedChange:
    return wish._replace(said="")


def _pick(draft: StoryDraft, trips: Sequence[Trip]) -> tuple[str, Trip] | None:
    """One of the trips by how it compares with the others, where no other is like it."""
    if len(trips) < 2:
        return None
    name, measure, sign = draft.rng.choice((
        ("leaves first", lambda trip: trip.flight.date + trip.flight.departs, 1),
        ("leaves last", lambda trip: trip.flight.date + trip.flight.departs, -1),
        ("cost most in all", lambda trip: trip.paid, -1),
        ("cost least in all", lambda trip: trip.paid, 1),
    ))  # fmt: skip
    ranked = sorted(trips, key=measure)[::sign]
    return None if measure(ranked[0]) == measure(ranked[1]) else (name, ranked[0])


def best(draft: StoryDraft) -> Stage | None:
    """Something for the first, last, dearest or cheapest trip."""
    picked = _pick(draft, coming(draft))
    wish = (
        wish_for(draft, draft.rng.choice((*EXTRAS, CANCEL, UPGRADE)), among=[picked[1]]) if picked else None
    )
    if picked is None or wish is None:
        return None
    made = part(draft, _silent(wish).named(it=the_one(draft, picked[0])))
    return one(
        draft.words(*(way.format(among=draft.words(*COMING), do=made.say) for way in AMONG)),
        look_at_all(draft),
        made,
    )


def best_and_rest(draft: StoryDraft) -> Stage | None:
    """One trip is cancelled, and something is done for what remains."""
    trips = coming(draft)
    picked = _pick(draft, trips)
    first = wish_for(draft, CANCEL, among=[picked[1]]) if picked else None
    rest = (
        each(draft, draft.rng.choice(EXTRAS), [trip for trip in trips if picked and trip != picked[1]])
        if first
        else ()
    )
    if picked is None or first is None or not rest:
        return None
    gone = part(draft, _silent(first).named(it=f"the one that {picked[0]}"))
    left = part(draft, rest[0].named(it="what remains of them"), *rest[1:])
    among = draft.words(*COMING)
    say = draft.words(*(way.format(among=among, do=gone.say, then=left.say) for way in REGARDING))
    return joined(draft, look_at_all(draft), gone, left, say)


def every(draft: StoryDraft) -> Stage | None:
    """The same for all trips that are still to come."""
    trips = coming(draft)
    wishes = each(draft, draft.rng.choice((*EXTRAS, CANCEL)), trips) if len(trips) > 1 else ()
    if not wishes:
        return None
    made = part(draft, _silent(wishes[0]).named(it=f"each of {draft.words(*COMING)}"), *wishes[1:])
    return one(sentence(draft, made.say), look_at_all(draft), made)


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
    made, among = part(draft, _silent(wishes[0]).named(it=name), *wishes[1:]), draft.words(*COMING)
    say = draft.words(
        f"Check {among}, and {made.say}. The others stay as they are.",
        f"I speak of {among}: {made.say}. Do nothing about the rest.",
        f"Of {among}, {made.say}. All others are to be left alone.",
        f"Go over {among} and {made.say}. Do not touch what is left.",
        f"Please see to {among}: {made.say}. Nothing is to happen to the remaining ones.",
        f"From {among}, please {made.say}. Whatever else there is shall remain unchanged.",
    )
    return one(say, look_at_all(draft), made)


# --- two things --------------------------------------------------------------------------------------


def _both(draft: StoryDraft, first: WishedChange, second: WishedChange, it: str = "") -> Stage:
    second = second.named(it=it)._replace(find=()) if it else second
    parts = (part(draft, _silent(first)), part(draft, _silent(second)))
    return joined(draft, once((*DESK.verify(draft), *first.looks, *second.looks)), *parts)


def two_for_one(draft: StoryDraft) -> Stage | None:
    """Two things for one trip."""
    trip = some_trip(draft, lambda trip: trip.flight.status in RUNS)
    operations = draft.rng.sample(WHOLE, 2)
    if UPGRADE in operations and {MEAL, BAGS} & {*operations}:
        return None  # what they cost would depend on which comes first
    first = wish_for(draft, operations[0], among=[trip]) if trip else None
    second = then(draft, first, operations[1], [trip]) if first else None
    return _both(draft, first, second, "the same trip") if first and second else None


def two_trips(draft: StoryDraft) -> Stage | None:
    """Something for one trip, and something for another."""
    found: list[WishedChange] = []
    for _ in range(2):
        trip = some_trip(draft, lambda trip: trip.flight.status in RUNS)
        wish = wish_for(draft, draft.rng.choice((*WHOLE, CANCEL)), among=[trip]) if trip else None
        if trip is None or wish is None:
            return None
        found.append(wish.named(it=f"reservation {trip.key}")._replace(find=()))
    return _both(draft, found[0], found[1])


def move_and(draft: StoryDraft) -> Stage | None:
    """Another day, and something for the trip."""
    trip = some_trip(draft, lambda trip: trip.flight.status == "scheduled")
    first = wish_for(draft, MOVE, among=[trip]) if trip else None
    if trip is None or first is None:
        return None
    after = draft.after(first.call).get("reservations", trip.key)
    moved = Trip(after, draft.db.get("flights", after.flight_id))
    second = then(draft, first, draft.rng.choice(EXTRAS), [moved])
    return _both(draft, first, second, "it") if second else None


def cancel_and_claim(draft: StoryDraft) -> Stage | None:
    """A refund and compensation for a flight that the airline cancelled."""
    user = me(draft)
    trip = some_trip(draft, lambda trip: trip.flight.status == "cancelled" and compensation(user, trip) > 0)
    first = wish_for(draft, CANCEL, among=[trip]) if trip else None
    second = wish_for(draft, CLAIM, among=[trip]) if first else None
    return _both(draft, first, second, "the flight that you cancelled") if first and second else None


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
        "It must not be delayed. What do I pay?",
        "No delayed flight, please. What is the price?",
        "It has to be on time. How much is it?",
        "Only one that is not delayed. What will it cost?",
    )
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
    if new is None or not books_for(draft, ALONE):
        return None
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
    return joined(draft, look, part(draft, _silent(first)), _booking(draft, new, "economy", name, second))


def book_beside(draft: StoryDraft) -> Stage | None:
    """A booking for somebody else on the flight of a trip."""
    trip = some_trip(
        draft,
        lambda trip: (
            trip.flight.status == "scheduled" and trip.flight.seats[CABINS.index(trip.found.cabin)] > 0
        ),
    )
    who = f"{draft.rng.choice(FIRST)} {draft.rng.choice(LAST)}"
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


SEVERAL = (
    best,
    best_and_rest,
    every,
    whichever,
    two_for_one,
    two_trips,
    move_and,
    cancel_and_claim,
    book,
    cancel_and_book,
    book_beside,
)
