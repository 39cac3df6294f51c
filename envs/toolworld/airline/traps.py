"""Requests that the airline's policy forbids: each is refused on record, or handed over."""

from __future__ import annotations

from turnwise.envs.toolworld.airline.parts import named, own_trip, verify
from turnwise.envs.toolworld.airline.rules import compensation, may_cancel
from turnwise.envs.toolworld.airline.state import AIRPORTS, AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import Stage, call, tell

_CANCEL = (
    "I feel unwell. Cancel {} and refund it.", "My meeting was called off. Cancel {} and give me the money back.", "I have to cancel {}; refund it, please.",
    "Something came up. Cancel {} with a refund.", "I cannot travel. Refund {} and cancel it.", "Please cancel {}, I caught a cold.",
)  # fmt: skip
_MOVE = (
    "Move {} to the day after, whatever flight it is.", "Put {} on a flight of the next day.", "I want to fly a day later on {}, change the flight.",
    "Rebook {} to the following day, please.", "Change the flight of {} to the one a day later.", "Let me fly one day later with {}: change the flight.",
)  # fmt: skip
_MONEY = (
    "You ruined my trip, {}. I demand compensation.", "Compensate me for {}, it was a disaster.", "I want money for the trouble with {}.",
    "What you did to {} must be compensated.", "There has to be a compensation for {}.", "Pay me something for the mess with {}.",
)  # fmt: skip
_MORE = (
    "My cousin comes along. Add a passenger to {}.", "Put one more passenger into {}.", "A friend joins us: add him to {}.", "We are one more now. Add a seat to {}.",
    "Please add my wife to {}.", "There is another traveller for {}, add one.",
)  # fmt: skip
_FLOWN = (
    "I did not take the flight of {}. Cancel it and refund me.", "I missed the plane of {}. Cancel and refund it.", "Cancel {}, I was not on board.",
    "Nobody used {}. Refund it and cancel it.", "I overslept and missed {}. Cancel it for a refund.", "Please refund {}, I did not fly. Cancel it.",
)  # fmt: skip
_UPGRADE = (
    "Upgrade {} to business after all.", "I want business class for {}, change it.", "Change {} to business.", "Put {} into business class, please.",
)  # fmt: skip
_ROUTE = (
    "Change the destination of {} to {{}}.", "I must go to {{}} instead: change {}.", "Let {} go to {{}}, not where it goes now.", "Rebook {} so that I land in {{}}.",
)  # fmt: skip
_FEWER = (
    "My friend cannot come. Take one passenger off {}.", "Remove a traveller from {} and refund the seat.", "We are one less: remove one from {}.",
    "One of us stays at home. Take that seat off {}.",
)  # fmt: skip
_LATE = (
    "Insure {} now.", "Add insurance to {}, better late than never.", "I want insurance for {} after all.", "Put insurance on {}, please.",
)  # fmt: skip
_FOR_PEOPLE = {
    "group_booking": (
        "I want to book seats for our choir, 25 people.", "Our class of 18 needs seats.", "We are a club of 31 people and want to fly together.", "Seats for 12 colleagues, please.",
    ),
    "medical": (
        "I travel with an oxygen device. What do I have to do?", "I need a stretcher on board.", "After my operation I need a nurse on the flight.", "I fly with a machine that breathes for me.",
    ),
    "unaccompanied_child": (
        "My daughter, who is seven, will fly alone. Please arrange it.", "My son is eight and travels by himself.", "Our boy of six flies to his grandmother without us.",
        "A child of nine will be on the plane alone.",
    ),
    "legal": (
        "I will sue you. Whom do I send the papers to?", "My lawyer needs an address of yours.", "We shall meet in court.", "This is about a lawsuit against you.",
    ),
}  # fmt: skip


def _refused(
    draft: StoryDraft, pair: tuple[Reservation, Flight] | None, say: tuple[str, ...], reason: str
) -> Stage | None:
    """A request that is refused; the ways to say it have a place for the reservation."""
    if pair is None:
        return None
    which, look = named(draft, *pair)
    plan = (
        *verify(draft), *look, call("record_refusal", reservation_id=pair[0].reservation_id, reason=reason),
        tell("Sorry, that is not possible."),
    )  # fmt: skip
    insist = draft.words(
        "Please, make an exception for me.", "Your colleague said that it would be no problem.", "I have flown with you for years. Do it.",
        "It is really important to me.", "Then ask somebody who can allow it.", "I am sure that you can do it if you want to.",
    )  # fmt: skip
    return Stage(draft.words(*say).format(which), plan, insist=insist if draft.rng.random() < 0.6 else "")


def no_cancel(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status != "flown" and not may_cancel(r, f))
    return _refused(draft, pair, _CANCEL, "cancellation_rules")


def no_move(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and r.cabin == "basic")
    return _refused(draft, pair, _MOVE, "basic_fare")


def no_money(draft: StoryDraft) -> Stage | None:
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    pair = own_trip(
        draft, lambda r, f: f.status in ("delayed", "cancelled") and compensation(user, r, f) == 0
    )
    return _refused(draft, pair, _MONEY, "no_compensation")


def no_seat(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "scheduled")
    return _refused(draft, pair, _MORE, "passenger_number")


def too_late(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "flown")
    return _refused(draft, pair, _FLOWN, "flown")


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
    key = found.reservation_id
    say = draft.words(
        f"Cancel {key} for my sister, she has no time to call you.", f"My boss asks me to cancel his reservation {key}.",
        f"Please cancel {key}, it is my husband's and he agrees.", f"A friend of mine booked {key}. Cancel it for her.",
    )  # fmt: skip
    return Stage(say, plan)


def transfer(draft: StoryDraft) -> Stage | None:
    reason = draft.rng.choice(sorted(_FOR_PEOPLE))
    say = draft.words(*_FOR_PEOPLE[reason])
    trip = draft.free(
        sorted({f"{f.origin} to {f.destination}" for f in draft.db.rows("flights")}), lambda name: name
    )
    if trip is None:
        return None
    about = draft.words(
        f"It is about flights from {trip}.",
        f"We mean a flight from {trip}.",
        f"The route is {trip}.",
        f"It concerns {trip}.",
    )
    return Stage(f"{say} {about}", (call("transfer_to_human", reason=reason),))


def upgrade_flown(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "flown" and r.cabin != "business")
    return _refused(draft, pair, _UPGRADE, "flown")


def other_route(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and r.cabin != "basic")
    if pair is None:
        return None
    other = draft.rng.choice([name for name in AIRPORTS if name not in (pair[1].origin, pair[1].destination)])
    return _refused(draft, pair, tuple(way.replace("{{}}", other) for way in _ROUTE), "route_change")


def fewer(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and len(r.passengers) > 1)
    return _refused(draft, pair, _FEWER, "passenger_number")


def insurance_late(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status in ("delayed", "cancelled") and not r.insured)
    return _refused(draft, pair, _LATE, "insurance_late")
