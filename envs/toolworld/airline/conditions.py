"""Wishes of the airline's customers that depend on what the agent finds out: one thing or another."""

from __future__ import annotations

from turnwise.envs.toolworld.airline import operations as changes
from turnwise.envs.toolworld.airline import parts
from turnwise.envs.toolworld.airline.parts import Fits, Trip
from turnwise.envs.toolworld.airline.questions import departure_of
from turnwise.envs.toolworld.alternatives import Lookup, WishPart, compared, decided, left_alone, part
from turnwise.envs.toolworld.domain import StoryDraft, fitting
from turnwise.envs.toolworld.operations import (
    IMPOSSIBLE,
    Called,
    Operation,
    WishedChange,
    accepted,
    wanted,
    wish_for,
)
from turnwise.envs.toolworld.story import Stage
from turnwise.envs.toolworld.vocabulary import counted


def _part(draft: StoryDraft, wish: WishedChange, it: str = "it") -> WishPart:
    """A wish about a trip that was named already; nothing is said beside it."""
    return part(draft, wish._replace(said="").named(it=it))


def _extra(draft: StoryDraft, trip: Trip, *but: Operation) -> WishPart | None:
    """Something else that could be done with the trip."""
    able = [one for one in (changes.MEAL, changes.INSURE, changes.BAGS) if one not in but]
    draft.rng.shuffle(able)
    found = (wish_for(draft, operation, among=[trip]) for operation in able)
    wish = next((one for one in found if one), None)
    return _part(draft, wish) if wish else None


def _perhaps(draft: StoryDraft, share: float, trip: Trip, *but: Operation) -> WishPart | None:
    """The same, with a probability."""
    return _extra(draft, trip, *but) if draft.rng.random() < share else None


def _else_the_trip(
    draft: StoryDraft, name: Called, condition: str, trip: Trip, wish: WishedChange, it: str = "it", *, share: float = 0.6, holds: bool
) -> Stage:  # fmt: skip
    """A change where a condition holds, else something else for the trip, or when it leaves."""
    other = _perhaps(draft, share, trip) or left_alone(draft, departure_of(trip, "it"))
    return decided(draft, name.find, condition, (_part(draft, wish, it), other), holds=holds)


def _if_priced(
    draft: StoryDraft, name: Called, wish: WishedChange, what: tuple[str, ...], other: WishPart | None, *, above: bool = False
) -> Stage:  # fmt: skip
    """A change if it costs little enough, or gives back enough; else something else, or its price is told."""
    known = Lookup(what, "money", abs(wish.amount), "It would be {} in total.")
    condition = compared(draft, known, above=above)
    branches = _part(draft, wish), other or left_alone(draft, known, "that amount in total")
    return decided(draft, (*name.find, *wish.reads), condition.say, branches, holds=condition.holds)


def refundable(draft: StoryDraft) -> Stage:
    """Cancelled if the rules allow it, else made the best of."""
    holds = draft.rng.random() < 0.5
    trip = fitting(parts.some_trip(draft, lambda trip: trip.runs))
    wish = wanted(draft, changes.CANCEL, trip, "" if holds else "cancellation_rules")
    name = parts.looked_at(draft, trip)
    condition = draft.say("may be cancelled", it=name.it)
    return _else_the_trip(draft, name, condition, trip, wish, share=0.7, holds=holds)


def insured(draft: StoryDraft) -> Stage:
    """Cancelled where it is insured, insured where it is not."""
    fresh, holds = not draft.used, draft.rng.random() < 0.5
    trip = fitting(
        parts.some_trip(
            draft, lambda t: t.flight.status == "scheduled" and (fresh or t.found.insured is holds)
        )
    )
    if trip.found.insured is not holds:  # few are insured
        draft.override("reservations", trip.key, insured=holds)
        trip = trip._replace(found=trip.found._replace(insured=holds))
    draft.used.add(trip.key)
    name = parts.looked_at(draft, trip)
    insure = _part(draft, changes.plain(changes.INSURE, trip, trip.found.insurance_price))
    if draft.rng.random() < 0.5:
        condition = draft.say("is insured", it=name.it)
        branches = _part(draft, changes.plain(changes.CANCEL, trip, trip.paid)), insure
    else:
        condition, holds = draft.say("is not insured", it=name.it), not holds
        branches = insure, fitting(_extra(draft, trip, changes.INSURE))
    return decided(draft, name.find, condition, branches, holds=holds)


def _instead(draft: StoryDraft, trip: Trip) -> WishPart | None:
    """Draw what somebody may want who does not want to be moved."""
    others = [changes.UPGRADE, changes.CANCEL] if trip.found.cabin == "economy" else [changes.CANCEL]
    wish = wish_for(draft, draft.rng.choice(others), among=[trip]) if draft.rng.random() < 0.5 else None
    return _part(draft, wish) if wish else _extra(draft, trip)


def _movable(draft: StoryDraft) -> tuple[Trip, WishedChange]:
    """A trip that may be moved, and the move to the cheapest flight of another day."""
    trip = fitting(parts.some_trip(draft, lambda trip: trip.found.cabin != "basic" and trip.runs))
    return trip, wanted(draft, changes.MOVE, trip).named(there="that flight")


def move_within(draft: StoryDraft) -> Stage:
    """Another day, if that is not too dear."""
    trip, move = _movable(draft)
    fitting(move.amount >= 200)
    name = parts.looked_at(draft, trip)
    what = draft.ways("price of moving", it=name.it, day=move.fill["day"])
    other = _instead(draft, trip) if draft.rng.random() < 0.6 else None
    return _if_priced(draft, name, move, what, other)


def leaves_by(draft: StoryDraft) -> Stage:
    """Another day, if the flight leaves early enough."""
    trip, move = _movable(draft)
    departs: str = draft.db.get("flights", move.arguments["new_flight_id"]).departs
    hour, holds = int(departs[:2]), draft.rng.random() < 0.5
    time = f"{min(23, hour + draft.rng.randint(1, 4)) if holds else max(4, hour - draft.rng.randint(0, 3)):02}:00"
    name = parts.looked_at(draft, trip)
    condition = draft.say("leaves before", it=name.it, day=move.fill["day"], time=time)
    known = Lookup(("that flight's time of departure",), "time", departs, "That flight leaves at {}.")
    told = left_alone(draft, known)
    other = (_instead(draft, trip) if draft.rng.random() < 0.5 else None) or told
    return decided(draft, (*name.find, *move.reads), condition, (_part(draft, move), other), holds=holds)


def _below_business(trip: Trip) -> bool:
    return trip.runs and trip.found.cabin != "business"


def upgrade_within(draft: StoryDraft) -> Stage:
    """Business, if that is not too dear."""
    trip = fitting(parts.some_trip(draft, _below_business))
    wish = wanted(draft, changes.UPGRADE, trip)
    name = parts.looked_at(draft, trip)
    what = draft.ways("price of business", it=name.it)
    return _if_priced(draft, name, wish, what, _perhaps(draft, 0.6, trip))


def seats_left(draft: StoryDraft) -> Stage:
    """Business, if it is empty enough."""
    trip = fitting(parts.some_trip(draft, _below_business))
    left, least, holds = trip.flight.seats[2], max(2, len(trip.found.passengers)), draft.rng.random() < 0.5
    fitting(not holds or left >= least)
    number = draft.rng.randint(least, left) if holds else max(left + 1, least) + draft.rng.randint(0, 2)
    wish = fitting(
        wish_for(draft, changes.UPGRADE, among=[trip]) or wish_for(draft, changes.UPGRADE, IMPOSSIBLE, [trip])
    )
    name = parts.looked_at(draft, trip)
    condition, what = (
        draft.say("seats are free", it=name.it, number=str(number)),
        "the number of free business seats",
    )
    told = left_alone(draft, Lookup((what,), "count", left, "There are {} seats left in business."))
    other = _perhaps(draft, 0.5, trip) or told
    return decided(draft, name.find, condition, (_part(draft, wish), other), holds=holds)


def _not_on_time(draft: StoryDraft, fits: Fits, *statuses: str) -> Trip:
    """A trip whose flight is not on time; few are, so it is made late where the story only begins."""
    if draft.used:
        return fitting(parts.some_trip(draft, lambda trip: trip.flight.status in statuses and fits(trip)))
    status = draft.rng.choice(statuses)

    def made(trip: Trip) -> Trip:
        return trip._replace(flight=trip.flight._replace(status=status))

    trip = fitting(
        parts.some_trip(draft, lambda trip: trip.flight.status == "scheduled" and fits(made(trip)))
    )
    draft.override("flights", trip.flight.flight_id, status=status)
    return made(trip)


def _late_or_not(draft: StoryDraft, fits: Fits, *statuses: str) -> tuple[Trip, Called, bool]:
    """A trip whose flight is not on time, or one that is, as often as not."""
    holds = draft.rng.random() < 0.5
    trip = (
        _not_on_time(draft, fits, *statuses)
        if holds
        else fitting(parts.some_trip(draft, lambda t: t.flight.status == "scheduled"))
    )
    draft.used.add(trip.key)
    return trip, parts.looked_at(draft, trip), holds


def late(draft: StoryDraft) -> Stage:
    """Compensation for a flight that is not on time, else something for the trip."""
    user = parts.me(draft)
    trip, name, holds = _late_or_not(
        draft, lambda trip: changes.compensation(user, trip) > 0, "delayed", "cancelled"
    )
    due, condition = changes.compensation(user, trip), draft.say("is late or cancelled", it=name.it)
    wish = changes.plain(changes.CLAIM, trip, 100 * due, user_id=draft.customer, amount_dollars=due)
    read = Called(name.it, (*name.find, parts.account(draft)))
    return _else_the_trip(draft, read, condition, trip, wish, "that", holds=holds)


def grounded(draft: StoryDraft) -> Stage:
    """A refund where the airline cancelled the flight, else something for the trip."""
    trip, name, holds = _late_or_not(draft, lambda trip: True, "cancelled")
    condition, wish = (
        draft.say("was cancelled by you", it=name.it),
        changes.plain(changes.CANCEL, trip, trip.paid),
    )
    return _else_the_trip(draft, name, condition, trip, wish, "my reservation", holds=holds)


def bags_free(draft: StoryDraft) -> Stage:
    """Bags, if they cost nothing."""
    user, number, holds = parts.me(draft), draft.rng.randint(1, 4), draft.rng.random() < 0.5
    trip = fitting(
        parts.some_trip(draft, lambda t: t.runs and (changes.paid_bags(user, t.found, number) == 0) is holds)
    )
    wish = accepted(draft, changes.packing(changes.BAGS, draft, trip, number))
    name = parts.looked_at(draft, trip)
    condition = draft.say("bags are free", it=name.it, many=counted(number, "bag"))
    told = left_alone(draft, Lookup(("the price of it",), "money", wish.amount, "It would be {}."))
    other = _perhaps(draft, 0.4, trip, changes.BAGS) or told
    return decided(
        draft, (*name.find, parts.account(draft)), condition, (_part(draft, wish), other), holds=holds
    )


def downgrade_for(draft: StoryDraft) -> Stage:
    """Economy, if enough comes back."""
    trip = fitting(parts.some_trip(draft, lambda trip: trip.runs and trip.found.cabin == "business"))
    wish = wanted(draft, changes.DOWNGRADE, trip)
    fitting(wish.amount <= -200)
    name = parts.looked_at(draft, trip)
    what = draft.ways("refund for economy", it=name.it)
    return _if_priced(draft, name, wish, what, _perhaps(draft, 0.5, trip), above=True)


CONDITIONS = (
    refundable, insured, move_within, leaves_by, upgrade_within, seats_left, late, grounded, bags_free, downgrade_for,
)  # fmt: skip
