"""What the airline's customers want of several trips: of one that must be found among them, of all, of two things at once."""

from __future__ import annotations

from turnwise.envs.toolworld.airline import wishes
from turnwise.envs.toolworld.airline.parts import (
    coming,
    look_at_all,
    verify,
)
from turnwise.envs.toolworld.airline.rules import may_cancel
from turnwise.envs.toolworld.airline.state import Flight, Reservation
from turnwise.envs.toolworld.alternatives import WishPart, joined
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import Stage, tell

_RUNS = ("scheduled", "delayed")
_COMING = (
    "my trips that are still to come", "the trips of mine which have not taken place yet", "my trips that lie ahead",
    "my trips that I have not flown yet", "my trips that are not over yet", "the trips that I still have before me",
)  # fmt: skip
Trip = tuple[Reservation, Flight]


def _pick(draft: StoryDraft, trips: list[Trip]) -> tuple[str, Trip] | None:
    """One of the trips by how it compares with the others, where no other is like it."""
    name, measure, sign = draft.rng.choice((
        ("leaves first", lambda trip: trip[1].date + trip[1].departs, 1),
        ("leaves last", lambda trip: trip[1].date + trip[1].departs, -1),
        ("cost most in all", lambda trip: wishes.total_of(trip[0]), -1),
        ("cost least in all", lambda trip: wishes.total_of(trip[0]), 1),
    ))  # fmt: skip
    ranked = sorted(trips, key=measure)[::sign]
    return None if measure(ranked[0]) == measure(ranked[1]) else (name, ranked[0])


def _the(draft: StoryDraft, name: str) -> str:
    return draft.words(
        f"the one that {name}", f"only the one which {name}", f"that one which {name}",
        f"just the one that {name}", f"whichever {name}", f"the single one that {name}",
    )  # fmt: skip


def granted(draft: StoryDraft, it: str, *trips: Trip) -> list[WishPart]:
    """What can be done with all of these trips."""
    own = [found for found, _ in trips]
    can = list[WishPart]()
    if all(f.status in _RUNS for _, f in trips):
        can.append(wishes.bags(draft, it, draft.rng.randint(1, 2), *own))
        if not any(r.meal for r in own):
            can.append(wishes.meal(draft, it, draft.rng.choice(wishes.MEALS), *own))
    if all(f.status == "scheduled" and not r.insured for r, f in trips):
        can.append(wishes.insure(draft, it, *own))
    if all(may_cancel(r, f) for r, f in trips):
        can.append(wishes.cancel(draft, it, *own))
    return can


def one_of(draft: StoryDraft) -> Stage | None:
    """Something for the first, last, dearest or cheapest trip."""
    trips = coming(draft)
    picked = _pick(draft, trips) if len(trips) > 1 else None
    can = granted(draft, _the(draft, picked[0]), picked[1]) if picked else []
    if picked is None or not can:
        return None
    found, flight = picked[1]
    if found.cabin != "business" and flight.status in _RUNS and flight.seats[2] >= len(found.passengers):
        can.append(wishes.cabin(draft, _the(draft, picked[0]), "business", found, flight))
    part, among = draft.rng.choice(can), draft.words(*_COMING)
    say = draft.words(
        f"Look at {among} and {part.say}.",
        f"This is about {among}: {part.say}.",
        f"Among {among}, {part.say}.",
        f"Please compare {among}, and {part.say}.",
        f"Of {among}, please {part.say}.",
        f"Go through {among}; then {part.say}.",
    )
    return Stage(say, (*verify(draft), *look_at_all(draft), *part.steps, tell(part.report)))


def one_and_rest(draft: StoryDraft) -> Stage | None:
    """One trip is cancelled, and something is done for what remains."""
    trips = coming(draft)
    picked = _pick(draft, trips) if len(trips) > 1 else None
    if picked is None or not may_cancel(*picked[1]):
        return None
    rest = [trip for trip in trips if trip != picked[1]]
    able = [
        part for part in granted(draft, "what remains of them", *rest) if "cancel" not in part.steps[0].text
    ]
    if not able:
        return None
    first = wishes.cancel(draft, f"the one that {picked[0]}", picked[1][0])
    second, among = draft.rng.choice(able), draft.words(*_COMING)
    say = draft.words(
        f"Take {among}: {first.say}; then {second.say}.",
        f"It is about {among}. From these, {first.say}; {second.say}.",
        f"I have thought about {among}: please {first.say}; and {second.say}.",
        f"Regarding {among}, {first.say}; also {second.say}.",
        f"With {among}, please do this: {first.say}; {second.say}.",
        f"See {among}: {first.say}; that done, {second.say}.",
    )
    return joined(draft, (*verify(draft), *look_at_all(draft)), first, second, say)


def all_trips(draft: StoryDraft) -> Stage | None:
    """The same for all trips that are still to come."""
    trips = coming(draft)
    able = granted(draft, f"each of {draft.words(*_COMING)}", *trips) if len(trips) > 1 else []
    if not able:
        return None
    part = draft.rng.choice(able)
    say = draft.words(
        f"Please {part.say}.", f"I would like you to {part.say}.", f"Do me a favour: {part.say}.",
        f"My wish is simple: {part.say}.", f"Would you {part.say}, please?", f"I ask you to {part.say}.",
    )  # fmt: skip
    return Stage(say, (*verify(draft), *look_at_all(draft), *part.steps, tell(part.report)))


def whichever(draft: StoryDraft) -> Stage | None:
    """Only those trips for which the rules allow it, or which lack it."""
    trips = coming(draft)
    refundable = [r for r, f in trips if may_cancel(r, f)]
    bare = [r for r, _ in trips if not r.insured]
    among = draft.words(*_COMING)
    if draft.rng.random() < 0.5:
        if not 0 < len(refundable) < len(trips):
            return None
        part = wishes.cancel(draft, "every one that your rules let me cancel", *refundable)
    else:
        if not 0 < len(bare) < len(trips) or any(f.status != "scheduled" for _, f in trips):
            return None
        part = wishes.insure(draft, "every one that has no insurance yet", *bare)
    say = draft.words(
        f"Check {among}, and {part.say}. The others stay as they are.",
        f"I speak of {among}: {part.say}. Do nothing about the rest.",
        f"Of {among}, {part.say}. All others are to be left alone.",
        f"Go over {among} and {part.say}. Do not touch what is left.",
        f"Please see to {among}: {part.say}. Nothing is to happen to the remaining ones.",
        f"From {among}, please {part.say}. Whatever else there is shall remain unchanged.",
    )
    return Stage(say, (*verify(draft), *look_at_all(draft), *part.steps, tell(part.report)))
