"""Wishes of the airline's customers that depend on what the agent finds out: one thing or another."""

from __future__ import annotations

from turnwise.envs.toolworld.airline.operations import (
    BAGS,
    CANCEL,
    CLAIM,
    DOWNGRADE,
    INSURE,
    MEAL,
    MOVE,
    UPGRADE,
    compensation,
    packing,
    paid_bags,
)
from turnwise.envs.toolworld.airline.parts import (
    DESK,
    RUNS,
    Fits,
    Trip,
    called,
    me,
    some_trip,
)
from turnwise.envs.toolworld.airline.questions import departure_of
from turnwise.envs.toolworld.alternatives import Lookup, WishPart, compared, decided, left_alone, part
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.operations import IMPOSSIBLE, Called, Operation, WishedChange, accept, wish_for
from turnwise.envs.toolworld.story import PlanStep, Stage, call, once
from turnwise.envs.toolworld.vocabulary import counted


def _read(draft: StoryDraft, trip: Trip, name: Called, *more: PlanStep) -> tuple[PlanStep, ...]:
    """List what is read before a condition can be decided."""
    return once((*DESK.verify(draft), *name.find, call("get_reservation", reservation_id=trip.key), *more))


def _account(draft: StoryDraft) -> PlanStep:
    return call("get_customer", user_id=draft.customer)


def _part(draft: StoryDraft, wish: WishedChange, it: str = "it") -> WishPart:
    """A wish about a trip that was named already; nothing is said beside it."""
    return part(draft, wish._replace(said="").named(it=it))


def _extra(draft: StoryDraft, trip: Trip, *but: Operation) -> WishPart | None:
    """Something else that could be done with the trip."""
    able = [one for one in (MEAL, INSURE, BAGS) if one not in but]
    draft.rng.shuffle(able)
    found = (wish_for(draft, operation, among=[trip]) for operation in able)
    wish = next((one for one in found if one), None)
    return _part(draft, wish) if wish else None


def _departure(draft: StoryDraft, trip: Trip) -> WishPart:
    return left_alone(draft, departure_of(trip, "it"))


def _if_priced(
    draft: StoryDraft, trip: Trip, name: Called, wish: WishedChange, what: tuple[str, ...], other: WishPart | None, *, above: bool = False
) -> Stage:  # fmt: skip
    """A change if it costs little enough, or gives back enough; else something else, or its price is told."""
    known = Lookup(what, "money", abs(wish.amount), "It would be {} in total.")
    condition = compared(draft, known, above=above)
    parts = _part(draft, wish), other or left_alone(draft, known, "that amount in total")
    return decided(draft, _read(draft, trip, name, *wish.reads), condition.say, parts, holds=condition.holds)


def refundable(draft: StoryDraft) -> Stage | None:
    """Cancelled if the rules allow it, else made the best of."""
    holds = draft.rng.random() < 0.5
    trip = some_trip(draft, lambda trip: trip.flight.status in RUNS)
    wish = wish_for(draft, CANCEL, "" if holds else "cancellation_rules", [trip]) if trip else None
    if trip is None or wish is None:
        return None
    name = called(draft, trip)
    condition = draft.words(
        f"your rules let me cancel {name.it}", f"{name.it} can be cancelled under your rules", f"{name.it} may be cancelled by your rules",
        f"the rules allow {name.it} to be cancelled", f"by the rules {name.it} is one that I can cancel", f"I am allowed to cancel {name.it}",
    )  # fmt: skip
    other = (_extra(draft, trip) if draft.rng.random() < 0.7 else None) or _departure(draft, trip)
    return decided(draft, _read(draft, trip, name), condition, (_part(draft, wish), other), holds=holds)


def insured(draft: StoryDraft) -> Stage | None:
    """Cancelled where it is insured, insured where it is not."""
    fresh, holds = not draft.used, draft.rng.random() < 0.5
    trip = some_trip(
        draft, lambda trip: trip.flight.status == "scheduled" and (fresh or trip.found.insured is holds)
    )
    if trip is None:
        return None
    if trip.found.insured is not holds:  # few are insured
        draft.override("reservations", trip.key, insured=holds)
        trip = trip._replace(found=trip.found._replace(insured=holds))
    draft.used.add(trip.key)
    name = called(draft, trip)
    insure = _part(
        draft,
        WishedChange(
            INSURE, trip.key, {"reservation_id": trip.key}, _words(trip, len(trip.found.passengers) * 3000)
        ),
    )
    if draft.rng.random() < 0.5:
        condition = draft.words(
            f"{name.it} is insured", f"there is insurance on {name.it}", f"I took insurance for {name.it}",
            f"{name.it} has insurance", f"insurance was taken for {name.it}", f"{name.it} came with insurance",
        )  # fmt: skip
        cancel = _part(
            draft, WishedChange(CANCEL, trip.key, {"reservation_id": trip.key}, _words(trip, trip.paid))
        )
        return decided(draft, _read(draft, trip, name), condition, (cancel, insure), holds=holds)
    condition = draft.words(
        f"{name.it} is not insured yet", f"there is no insurance on {name.it}", f"I forgot to insure {name.it}",
        f"{name.it} has no insurance", f"no insurance was taken for {name.it}", f"{name.it} came without insurance",
    )  # fmt: skip
    other = _extra(draft, trip, INSURE)
    return (
        decided(draft, _read(draft, trip, name), condition, (insure, other), holds=not holds)
        if other
        else None
    )


def _words(trip: Trip, amount: int) -> dict[str, str]:
    return {"it": "it", "trip": f"reservation {trip.key}", "money": dollars(amount)}


def _instead(draft: StoryDraft, trip: Trip) -> WishPart | None:
    """Draw what somebody may want who does not want to be moved."""
    others = [UPGRADE, CANCEL] if trip.found.cabin == "economy" else [CANCEL]
    wish = wish_for(draft, draft.rng.choice(others), among=[trip]) if draft.rng.random() < 0.5 else None
    return _part(draft, wish) if wish else _extra(draft, trip)


def _movable(draft: StoryDraft) -> tuple[Trip, WishedChange] | None:
    """A trip that may be moved, and the move to the cheapest flight of another day."""
    trip = some_trip(draft, lambda trip: trip.found.cabin != "basic" and trip.flight.status in RUNS)
    wish = wish_for(draft, MOVE, among=[trip]) if trip else None
    return (trip, wish) if trip and wish else None


def move_within(draft: StoryDraft) -> Stage | None:
    """Another day, if that is not too dear."""
    found = _movable(draft)
    if found is None or found[1].amount < 200:
        return None
    trip, move = found
    day, name = move.fill["day"], called(draft, trip)
    what = (
        f"the price of the cheapest flight of {day}, in all and beyond that of {name.it},", f"the cost of moving {name.it} to the cheapest flight on {day}, in total,",
        f"the total that I pay for a move of {name.it} to the cheapest flight on {day}", f"the total difference between {name.it} and the cheapest flight on {day}",
    )  # fmt: skip
    other = _instead(draft, trip) if draft.rng.random() < 0.6 else None
    return _if_priced(draft, trip, name, move.named(there="that flight"), what, other)


def leaves_by(draft: StoryDraft) -> Stage | None:
    """Another day, if the flight leaves early enough."""
    found = _movable(draft)
    if found is None:
        return None
    trip, move = found
    departs: str = draft.db.get("flights", move.arguments["new_flight_id"]).departs
    hour, holds, day = int(departs[:2]), draft.rng.random() < 0.5, move.fill["day"]
    time = f"{min(23, hour + draft.rng.randint(1, 4)) if holds else max(4, hour - draft.rng.randint(0, 3)):02}:00"
    name = called(draft, trip)
    condition = draft.words(
        f"the cheapest flight that {name.it} can be moved to on {day} leaves before {time}",
        f"on {day} the cheapest flight for {name.it} takes off before {time}",
        f"the cheapest alternative to {name.it} on {day} departs earlier than {time}",
        f"the cheapest flight for {name.it} on {day} leaves earlier in the day than {time}",
        f"the cheapest replacement for {name.it} on {day} starts before {time}",
        f"what is cheapest for {name.it} on {day} leaves sooner than {time}",
    )
    known = Lookup(("that flight's time of departure",), "time", departs, "That flight leaves at {}.")
    told = left_alone(draft, known)
    other = (_instead(draft, trip) if draft.rng.random() < 0.5 else None) or told
    first = _part(draft, move.named(there="that flight"))
    return decided(draft, _read(draft, trip, name, *move.reads), condition, (first, other), holds=holds)


def upgrade_within(draft: StoryDraft) -> Stage | None:
    """Business, if that is not too dear."""
    trip = some_trip(draft, lambda trip: trip.flight.status in RUNS and trip.found.cabin != "business")
    wish = wish_for(draft, UPGRADE, among=[trip]) if trip else None
    if trip is None or wish is None:
        return None
    name = called(draft, trip)
    what = (
        f"the surcharge for business on {name.it}, all passengers together,", f"the price of an upgrade of {name.it} to business, in all,",
        f"the total that business on {name.it} costs extra", f"the sum that we pay on top for business on {name.it}, all together,",
    )  # fmt: skip
    return _if_priced(
        draft, trip, name, wish, what, _extra(draft, trip) if draft.rng.random() < 0.6 else None
    )


def seats_left(draft: StoryDraft) -> Stage | None:
    """Business, if it is empty enough."""
    trip = some_trip(draft, lambda trip: trip.flight.status in RUNS and trip.found.cabin != "business")
    if trip is None:
        return None
    left, least, holds = trip.flight.seats[2], max(2, len(trip.found.passengers)), draft.rng.random() < 0.5
    if holds and left < least:
        return None
    number = draft.rng.randint(least, left) if holds else max(left + 1, least) + draft.rng.randint(0, 2)
    wish = wish_for(draft, UPGRADE, among=[trip]) or wish_for(draft, UPGRADE, IMPOSSIBLE, [trip])
    if wish is None:
        return None
    name = called(draft, trip)
    condition = draft.words(
        f"at least {number} seats are free in business on the flight of {name.it}",
        f"business on the flight of {name.it} has {number} free seats or more",
        f"there are no fewer than {number} seats left in business on the flight of {name.it}",
        f"business on the flight of {name.it} still has at least {number} seats",
        f"I find {number} or more free places in business on the flight of {name.it}",
        f"not fewer than {number} business seats are left on the flight of {name.it}",
    )
    known = Lookup(
        ("the number of free business seats",), "count", left, "There are {} seats left in business."
    )
    told = left_alone(draft, known)
    other = (_extra(draft, trip) if draft.rng.random() < 0.5 else None) or told
    return decided(draft, _read(draft, trip, name), condition, (_part(draft, wish), other), holds=holds)


def _not_on_time(draft: StoryDraft, fits: Fits, *statuses: str) -> Trip | None:
    """A trip whose flight is not on time; few are, so it is made late where the story only begins."""
    if draft.used:
        return some_trip(draft, lambda trip: trip.flight.status in statuses and fits(trip))
    status = draft.rng.choice(statuses)
    trip = some_trip(
        draft,
        lambda t: (
            t.flight.status == "scheduled" and fits(t._replace(flight=t.flight._replace(status=status)))
        ),
    )
    if trip is None:
        return None
    draft.override("flights", trip.flight.flight_id, status=status)
    return trip._replace(flight=trip.flight._replace(status=status))


def late(draft: StoryDraft) -> Stage | None:
    """Compensation for a flight that is not on time, else something for the trip."""
    user, holds = me(draft), draft.rng.random() < 0.5
    if holds:
        trip = _not_on_time(draft, lambda trip: compensation(user, trip) > 0, "delayed", "cancelled")
    else:
        trip = some_trip(draft, lambda trip: trip.flight.status == "scheduled")
    if trip is None:
        return None
    draft.used.add(trip.key)
    name, due = called(draft, trip), compensation(user, trip)
    condition = draft.words(
        f"the flight of {name.it} is delayed or cancelled", f"you have delayed or cancelled the flight of {name.it}",
        f"there is a delay of {name.it}, or its flight is cancelled", f"the flight of {name.it} is no longer on time, or is cancelled",
        f"the plane of {name.it} was delayed, or cancelled altogether", f"{name.it} has a flight that is late or cancelled",
    )  # fmt: skip
    wish = WishedChange(
        CLAIM, trip.key, {"user_id": draft.customer, "amount_dollars": due}, _words(trip, 100 * due)
    )
    other = (_extra(draft, trip) if draft.rng.random() < 0.6 else None) or _departure(draft, trip)
    return decided(
        draft,
        _read(draft, trip, name, _account(draft)),
        condition,
        (_part(draft, wish, "that"), other),
        holds=holds,
    )


def grounded(draft: StoryDraft) -> Stage | None:
    """A refund where the airline cancelled the flight, else something for the trip."""
    holds = draft.rng.random() < 0.5
    if holds:
        trip = _not_on_time(draft, lambda trip: True, "cancelled")
    else:
        trip = some_trip(draft, lambda trip: trip.flight.status == "scheduled")
    if trip is None:
        return None
    draft.used.add(trip.key)
    name = called(draft, trip)
    condition = draft.words(
        f"the flight of {name.it} was cancelled by you", f"you have cancelled the flight of {name.it}",
        f"the airline has cancelled the flight of {name.it}", f"the flight of {name.it} does not take place because you cancelled it",
        f"your company cancelled the flight of {name.it}", f"the flight of {name.it} is a cancelled one",
    )  # fmt: skip
    wish = WishedChange(CANCEL, trip.key, {"reservation_id": trip.key}, _words(trip, trip.paid))
    other = (_extra(draft, trip) if draft.rng.random() < 0.6 else None) or _departure(draft, trip)
    return decided(
        draft, _read(draft, trip, name), condition, (_part(draft, wish, "my reservation"), other), holds=holds
    )


def bags_free(draft: StoryDraft) -> Stage | None:
    """Bags, if they cost nothing."""
    user, number, holds = me(draft), draft.rng.randint(1, 4), draft.rng.random() < 0.5
    trip = some_trip(
        draft, lambda trip: trip.flight.status in RUNS and (paid_bags(user, trip.found, number) == 0) is holds
    )
    wish = packing(BAGS, draft, trip, number) if trip else None
    if trip is None or wish is None or not accept(draft, wish):
        return None
    name, many = called(draft, trip), counted(number, "bag")
    condition = draft.words(
        f"I can add {many} to {name.it} without paying for any", f"{many} can be added to {name.it} free of charge",
        f"{name.it} leaves me {many} to add for free", f"adding {many} to {name.it} costs me nothing",
        f"I have nothing to pay for {many} added to {name.it}", f"no fee is due for {many} added to {name.it}",
    )  # fmt: skip
    told = left_alone(draft, Lookup(("the price of it",), "money", wish.amount, "It would be {}."))
    other = (_extra(draft, trip, BAGS) if draft.rng.random() < 0.4 else None) or told
    return decided(
        draft, _read(draft, trip, name, _account(draft)), condition, (_part(draft, wish), other), holds=holds
    )


def downgrade_for(draft: StoryDraft) -> Stage | None:
    """Economy, if enough comes back."""
    trip = some_trip(draft, lambda trip: trip.flight.status in RUNS and trip.found.cabin == "business")
    wish = wish_for(draft, DOWNGRADE, among=[trip]) if trip else None
    if trip is None or wish is None or -wish.amount < 200:
        return None
    name = called(draft, trip)
    what = (
        f"the refund for a change of {name.it} to economy, in total,", f"the sum that we save in all by economy on {name.it}", f"the total that comes back when {name.it} goes down to economy",
        f"the amount that all of us get back for economy on {name.it}",
    )  # fmt: skip
    other = _extra(draft, trip) if draft.rng.random() < 0.5 else None
    return _if_priced(draft, trip, name, wish, what, other, above=True)


CONDITIONS = (
    refundable, insured, move_within, leaves_by, upgrade_within, seats_left, late, grounded, bags_free, downgrade_for,
)  # fmt: skip
