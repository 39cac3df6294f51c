"""Requests that the airline's policy forbids: each is refused on record, or handed over."""

from __future__ import annotations

from turnwise.envs.toolworld.airline.parts import named, own_trip, verify
from turnwise.envs.toolworld.airline.rules import compensation, may_cancel
from turnwise.envs.toolworld.airline.state import AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import Stage, call, tell


def _refused(
    draft: StoryDraft, pair: tuple[Reservation, Flight] | None, say: str, reason: str
) -> Stage | None:
    """A request that is refused; ``say`` has a place for the reservation."""
    if pair is None:
        return None
    which, look = named(draft, *pair)
    plan = (
        *verify(draft), *look, call("record_refusal", reservation_id=pair[0].reservation_id, reason=reason),
        tell("Sorry, that is not possible."),
    )  # fmt: skip
    insist = draft.words(
        "Please, make an exception for me.", "Your colleague said that it would be no problem."
    )
    return Stage(say.format(which), plan, insist=insist if draft.rng.random() < 0.6 else "")


def no_cancel(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status != "flown" and not may_cancel(r, f))
    return _refused(draft, pair, "I feel unwell. Cancel {} and refund it.", "cancellation_rules")


def no_move(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and r.cabin == "basic")
    return _refused(draft, pair, "Move {} to the day after, whatever flight it is.", "basic_fare")


def no_money(draft: StoryDraft) -> Stage | None:
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    pair = own_trip(
        draft, lambda r, f: f.status in ("delayed", "cancelled") and compensation(user, r, f) == 0
    )
    return _refused(draft, pair, "You ruined my trip, {}. I demand compensation.", "no_compensation")


def no_seat(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "scheduled")
    return _refused(draft, pair, "My cousin comes along. Add a passenger to {}.", "passenger_number")


def too_late(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "flown")
    return _refused(draft, pair, "I did not take the flight of {}. Cancel it and refund me.", "flown")


def foreign(draft: StoryDraft) -> Stage | None:
    foreign = [
        r for r in draft.db.rows("reservations") if r.user_id != draft.customer and r.status == "active"
    ]
    found = draft.free(foreign, lambda r: r.reservation_id)
    if found is None:
        return None
    plan = (
        *verify(draft), call("get_reservation", reservation_id=found.reservation_id),
        call("record_refusal", reservation_id=found.reservation_id, reason="not_owner"), tell("Sorry, I cannot do that."),
    )  # fmt: skip
    return Stage(f"Cancel {found.reservation_id} for my sister, she has no time to call you.", plan)


def transfer(draft: StoryDraft) -> Stage | None:
    reason, say = draft.rng.choice(
        (
            ("group_booking", "I want to book seats for our choir, 25 people."),
            ("medical", "I travel with an oxygen device. What do I have to do?"),
            ("unaccompanied_child", "My daughter, who is seven, will fly alone. Please arrange it."),
            ("legal", "I will sue you. Whom do I send the papers to?"),
        )
    )
    trip = draft.free(
        sorted({f"{f.origin} to {f.destination}" for f in draft.db.rows("flights")}), lambda name: name
    )
    return (
        trip and Stage(f"{say} It is about flights from {trip}.", (call("transfer_to_human", reason=reason),))
    ) or None
