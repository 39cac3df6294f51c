"""Parts of the airline's stories: the customer, a trip and how it is called, the flights of a day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from turnwise.envs.toolworld.airline.state import CABINS, AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import Called, ServiceDesk
from turnwise.envs.toolworld.story import PlanStep, ask, call
from turnwise.envs.toolworld.vocabulary import world_words

RUNS = ("scheduled", "delayed")
ALONE = "It's just for me."


def enter(draft: StoryDraft) -> bool:
    user: AirlineCustomer = draft.rng.choice(draft.db.rows("users"))
    draft.customer = user.user_id
    draft.facts["user_id"] = f"My user id is {user.user_id}."
    draft.facts["birthday"] = f"I was born on {user.birthday}."
    return True


def me(draft: StoryDraft) -> AirlineCustomer:
    return draft.db.get("users", draft.customer)


def _verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    user = me(draft)
    return (
        ask("What is your user id?", "user_id"),
        ask("What is your birthday?", "birthday"),
        call("verify_customer", user_id=user.user_id, birthday=user.birthday),
    )


DESK = ServiceDesk(
    _verify,
    lambda wish, rule: call("record_refusal", reservation_id=wish.subject, reason=rule),
    lambda wish: (call("get_reservation", reservation_id=wish.subject),),
)


class Trip(NamedTuple):
    """A reservation with its flight."""

    found: Reservation
    flight: Flight

    @property
    def key(self) -> str:
        return self.found.reservation_id

    @property
    def paid(self) -> int:
        """Cents for all passengers."""
        return self.found.price * len(self.found.passengers)

    def priced(self, cabin: str) -> int:
        """Cents that all passengers would pay in a cabin of the flight."""
        return self.flight.prices[CABINS.index(cabin)] * len(self.found.passengers)


Fits = Callable[[Trip], bool]


def trips(draft: StoryDraft, own: bool) -> list[Trip]:
    """The customer's active reservations, or those of others; none that is made in this story, whose id they cannot know."""
    rows: Sequence[Reservation] = draft.db.rows("reservations")
    return [
        Trip(r, draft.db.get("flights", r.flight_id)) for r in rows
        if (r.user_id == draft.customer) is own and r.status == "active" and draft.base.find("reservations", r.reservation_id)
    ]  # fmt: skip


def some_trip(draft: StoryDraft, fits: Fits) -> Trip | None:
    """One of the customer's trips that no request is about yet. It is not marked as used."""
    left = [trip for trip in trips(draft, True) if trip.key not in draft.used and fits(trip)]
    return draft.rng.choice(left) if left else None


def coming(draft: StoryDraft) -> list[Trip]:
    """All trips of the customer that are to come; none where a request is about one, or one is cancelled."""
    own = [r for r in draft.db.rows("reservations") if r.user_id == draft.customer and r.status == "active"]
    found = [
        trip for r in own if (trip := Trip(r, draft.db.get("flights", r.flight_id))).flight.status != "flown"
    ]
    return [] if any(trip.key in draft.used or trip.flight.status == "cancelled" for trip in found) else found


def called(draft: StoryDraft, trip: Trip) -> Called:
    """A trip by its reservation or by its airports; one of others by its reservation."""
    if trip.found.user_id != draft.customer:
        whose = draft.words("my sister's ", "my husband's ", "my boss's ", "my friend's ")
        return Called(f"{whose if draft.rng.random() < 0.4 else ''}reservation {trip.key}")
    rows = (r for r in draft.db.rows("reservations") if r.user_id == draft.customer)
    own: list[Flight] = [draft.db.get("flights", r.flight_id) for r in rows]
    ends = trip.flight.origin, trip.flight.destination
    alone = sum((flight.origin, flight.destination) == ends for flight in own) == 1
    if not alone or draft.rng.random() < 0.5:
        return Called(f"reservation {trip.key}")
    return Called(f"my trip from {ends[0]} to {ends[1]}", (call("get_customer", user_id=draft.customer),))


def books_for(draft: StoryDraft, who: str) -> bool:
    """Note for whom the customer books; False where they book for somebody else in the same story."""
    return draft.facts.setdefault("passengers", who) == who


def new_surname(draft: StoryDraft, old: str) -> str:
    """The same first name with another last name."""
    return f"{old.split()[0]} {draft.rng.choice([name for name in world_words().last if name not in old])}"


def look_at_all(draft: StoryDraft) -> tuple[PlanStep, ...]:
    """Read the account and every reservation in it."""
    own = [r for r in draft.db.rows("reservations") if r.user_id == draft.customer]
    reads = (call("get_reservation", reservation_id=r.reservation_id) for r in own)
    return (*_verify(draft), call("get_customer", user_id=draft.customer), *reads)


def able_on(draft: StoryDraft, trip: Trip, day: str) -> list[Flight]:
    """The flights of a day on which a reservation has room, the cheapest first."""
    place, old = CABINS.index(trip.found.cabin), trip.flight
    able = [
        f for f in draft.db.rows("flights")
        if (f.origin, f.destination, f.date) == (old.origin, old.destination, day)
        and f.status == "scheduled" and f.seats[place] >= len(trip.found.passengers)
    ]  # fmt: skip
    return sorted(able, key=lambda f: f.prices[place])


def cheapest_alone(cabin: str, flights: Sequence[Flight]) -> Flight | None:
    """The first of the flights, where no other costs as little."""
    place = CABINS.index(cabin)
    if not flights or (len(flights) > 1 and flights[0].prices[place] == flights[1].prices[place]):
        return None
    return flights[0]


def search(flight: Flight, day: str) -> PlanStep:
    return call("search_flights", origin=flight.origin, destination=flight.destination, date=day)
