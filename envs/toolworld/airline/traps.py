"""Requests that the airline's policy forbids: each is refused on record, or handed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from turnwise.envs.toolworld.airline import asking
from turnwise.envs.toolworld.airline.parts import Fits, named, new_surname, own_trip, verify
from turnwise.envs.toolworld.airline.rules import compensation, may_cancel
from turnwise.envs.toolworld.airline.state import AIRPORTS, DAYS, TODAY, AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.airline.wishes import MEALS
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.story import Stage, call, tell

_MORE = (
    "My cousin comes along. Add a passenger to {}.", "Put one more passenger into {}.", "A friend joins us: add him to {}.", "We are one more now. Add a seat to {}.",
    "Please add my wife to {}.", "There is another traveller for {}, add one.",
)  # fmt: skip
_ROUTE = (
    "Change the destination of {0} to {1}.", "I must go to {1} instead: change {0}.", "Let {0} go to {1}, not where it goes now.", "Rebook {0} so that I land in {1}.",
)  # fmt: skip
_FEWER = (
    "My friend cannot come. Take one passenger off {}.", "Remove a traveller from {} and refund the seat.", "We are one less: remove one from {}.",
    "One of us stays at home. Take that seat off {}.",
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
    draft: StoryDraft, pair: tuple[Reservation, Flight] | None, say: Callable[[str], str], reason: str
) -> Stage | None:
    """A request that is refused; how it is said, by how the reservation is named."""
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
    return Stage(say(which), plan, insist=insist if draft.rng.random() < 0.6 else "")


def _cancel(draft: StoryDraft) -> Callable[[str], str]:
    return lambda which: asking.cancel(draft, which, asking.question(draft, *asking.REFUND))


def _move(draft: StoryDraft, old: Flight) -> Callable[[str], str]:
    day = draft.rng.choice([day for day in DAYS if day > TODAY and day != old.date])
    return lambda which: asking.move(draft, which, day)


def _insure(draft: StoryDraft) -> Callable[[str], str]:
    return lambda which: asking.insure(draft, which, asking.question(draft, *asking.PRICE))


def _bags(draft: StoryDraft) -> Callable[[str], str]:
    number = draft.rng.randint(1, 4)
    return lambda which: asking.bags(draft, which, number, asking.question(draft, *asking.PRICE))


def _meal(draft: StoryDraft) -> Callable[[str], str]:
    food = draft.rng.choice(MEALS)
    return lambda which: asking.meal(draft, which, food, asking.question(draft, *asking.PRICE))


def _cabin(draft: StoryDraft, found: Reservation) -> Callable[[str], str]:
    if found.cabin == "business":
        return lambda which: asking.downgrade(draft, which, asking.question(draft, *asking.REFUND))
    return lambda which: asking.upgrade(draft, which, asking.question(draft, *asking.PRICE))


def _rename(draft: StoryDraft, found: Reservation) -> Callable[[str], str]:
    old = found.passengers[-1]
    new = new_surname(draft, old)
    return lambda which: asking.rename(draft, which, old, new)


def no_cancel(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status != "flown" and not may_cancel(r, f))
    return _refused(draft, pair, _cancel(draft), "cancellation_rules")


def no_move(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and r.cabin == "basic")
    return _refused(draft, pair, _move(draft, pair[1]), "basic_fare") if pair else None


def no_money(draft: StoryDraft) -> Stage | None:
    """Nothing is due: to this customer, or for a flight of which he thinks that it is late."""
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    late = ("scheduled",) if draft.rng.random() < 0.3 else ("delayed", "cancelled")
    pair = own_trip(draft, lambda r, f: f.status in late and compensation(user, r, f) == 0)
    if pair is None:
        return None
    status = "delayed" if pair[1].status == "scheduled" else pair[1].status
    said = status if draft.rng.random() < 0.6 else ""
    asked = asking.question(draft, *asking.AMOUNT)
    return _refused(draft, pair, lambda which: asking.claim(draft, which, said, asked), "no_compensation")


def _never(draft: StoryDraft, say: Callable[[str], str], reason: str, fits: Fits) -> Stage | None:
    """What nobody may; after the flight that is the reason."""
    statuses = ("flown",) if draft.rng.random() < 0.3 else ("scheduled",)
    pair = own_trip(draft, lambda r, f: f.status in statuses and fits(r, f))
    return _refused(draft, pair, say, "flown" if "flown" in statuses else reason)


def no_seat(draft: StoryDraft) -> Stage | None:
    say = draft.words(*_MORE)
    return _never(draft, say.format, "passenger_number", lambda r, f: len(r.passengers) < 6)


def fewer(draft: StoryDraft) -> Stage | None:
    say = draft.words(*_FEWER)
    return _never(draft, say.format, "passenger_number", lambda r, f: len(r.passengers) > 1)


def other_route(draft: StoryDraft) -> Stage | None:
    statuses = ("flown",) if draft.rng.random() < 0.3 else ("scheduled",)
    pair = own_trip(draft, lambda r, f: f.status in statuses and r.cabin != "basic")
    if pair is None:
        return None
    other = draft.rng.choice([name for name in AIRPORTS if name not in (pair[1].origin, pair[1].destination)])
    say = draft.words(*_ROUTE)
    reason = "flown" if pair[1].status == "flown" else "route_change"
    return _refused(draft, pair, lambda which: say.format(which, other), reason)


def _too_late(draft: StoryDraft, kinds: Sequence[str]) -> Stage | None:
    """Something that could be done before the flight."""
    kind = draft.rng.choice(kinds)

    def fits(r: Reservation, f: Flight) -> bool:
        able = {"meal": not r.meal, "insure": not r.insured, "rename": len(r.passengers) > 1}
        return f.status == "flown" and able.get(kind, True)

    pair = own_trip(draft, fits)
    if pair is None:
        return None
    makes = {
        "cancel": lambda: _cancel(draft), "move": lambda: _move(draft, pair[1]), "cabin": lambda: _cabin(draft, pair[0]),
        "bags": lambda: _bags(draft), "meal": lambda: _meal(draft), "insure": lambda: _insure(draft),
        "rename": lambda: _rename(draft, pair[0]),
    }  # fmt: skip
    return _refused(draft, pair, makes[kind](), "flown")


def too_late(draft: StoryDraft) -> Stage | None:
    return _too_late(draft, ("cancel", "move"))


def changed_late(draft: StoryDraft) -> Stage | None:
    return _too_late(draft, ("cabin", "bags", "meal", "insure", "rename"))


def insurance_late(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status in ("delayed", "cancelled") and not r.insured)
    return _refused(draft, pair, _insure(draft), "insurance_late")


def foreign(draft: StoryDraft) -> Stage | None:
    """A reservation of somebody else: the customer says so, or it must be seen."""
    foreign = [
        r for r in draft.db.rows("reservations") if r.user_id != draft.customer and r.status == "active"
    ]
    found = draft.free(foreign, lambda r: r.reservation_id)
    if found is None:
        return None
    key = found.reservation_id
    plan = (
        *verify(draft), call("get_reservation", reservation_id=key),
        call("record_refusal", reservation_id=key, reason="not_owner"), tell("Sorry, I cannot do that."),
    )  # fmt: skip
    if draft.rng.random() < 0.4:
        say = draft.words(
            f"Cancel {key} for my sister, she has no time to call you.", f"My boss asks me to cancel his reservation {key}.",
            f"Please cancel {key}, it is my husband's and he agrees.", f"A friend of mine booked {key}. Cancel it for her.",
        )  # fmt: skip
    else:
        say = draft.rng.choice((_cancel, _insure, _bags, _meal))(draft)(f"reservation {key}")
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
