"""Parts of the airline's stories: the customer, a trip and how it is called, the flights of a day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from turnwise.envs.toolworld.airline.state import CABINS, AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.operations import Called, ServiceDesk, called_by
from turnwise.envs.toolworld.story import PlanStep, call, verified

ALONE = "It's just for me."


def enter(draft: StoryDraft) -> bool:
    user: AirlineCustomer = draft.rng.choice(draft.db.rows("users"))
    draft.customer = user.user_id
    draft.facts["user_id"] = f"My user id is {user.user_id}."
    draft.facts["birthday"] = f"I was born on {user.birthday}."
    return True


def me(draft: StoryDraft) -> AirlineCustomer:
    return draft.db.get("users", draft.customer)


def account(draft: StoryDraft) -> PlanStep:
    return call("get_customer", user_id=draft.customer)


def _verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    questions = {"user_id": "What is your user id?", "birthday": "What is your birthday?"}
    return verified(me(draft), "verify_customer", **questions)


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
    def runs(self) -> bool:
        return self.flight.status in ("scheduled", "delayed")

    @property
    def place(self) -> int:
        """Place of its cabin among the cabins."""
        return CABINS.index(self.found.cabin)

    @property
    def paid(self) -> int:
        """Cents for all passengers."""
        return self.found.price * len(self.found.passengers)

    def priced(self, cabin: str) -> int:
        """Cents that all passengers would pay in a cabin of the flight."""
        return self.flight.prices[CABINS.index(cabin)] * len(self.found.passengers)


Fits = Callable[[Trip], bool]


def mine(draft: StoryDraft, own: bool = True) -> list[Trip]:
    """All trips of the customer, or those of others."""
    rows: Sequence[Reservation] = draft.db.rows("reservations")
    return [Trip(r, draft.db.get("flights", r.flight_id)) for r in rows if (r.user_id == draft.customer) is own]  # fmt: skip


def trips(draft: StoryDraft, own: bool) -> list[Trip]:
    """The customer's active reservations, or those of others; none that is made in this story, whose id they cannot know."""
    known = draft.base.tables["reservations"]
    return [trip for trip in mine(draft, own) if trip.found.status == "active" and trip.key in known]


def some_trip(draft: StoryDraft, fits: Fits) -> Trip | None:
    """One of the customer's trips that no request is about yet. It is not marked as used."""
    left = [trip for trip in trips(draft, True) if trip.key not in draft.used and fits(trip)]
    return draft.rng.choice(left) if left else None


def coming(draft: StoryDraft) -> list[Trip]:
    """All trips of the customer that are to come; none where a request is about one, or one is cancelled."""
    found = [t for t in mine(draft) if t.found.status == "active" and t.flight.status != "flown"]
    return [] if any(trip.key in draft.used or trip.flight.status == "cancelled" for trip in found) else found


def called(draft: StoryDraft, trip: Trip) -> Called:
    """A trip by its reservation or by its airports; one of others by its reservation."""
    ends = trip.flight.route
    alone = sum(own.flight.route == ends for own in mine(draft)) == 1
    name = f"my trip from {ends[0]} to {ends[1]}" if alone else ""
    whose = "whose trip" if trip.found.user_id != draft.customer else ""
    return called_by(draft, f"reservation {trip.key}", name, account(draft), whose=whose, share=0.5)


def looked_at(draft: StoryDraft, trip: Trip) -> Called:
    """A trip as it is called, and all steps until its reservation is read."""
    name, read = called(draft, trip), call("get_reservation", reservation_id=trip.key)
    return Called(name.it, (*DESK.verify(draft), *name.find, read))


def books_for(draft: StoryDraft, who: str) -> bool:
    """Note for whom the customer books; False where they book for somebody else in the same story."""
    return draft.facts.setdefault("passengers", who) == who


def look_at_all(draft: StoryDraft) -> tuple[PlanStep, ...]:
    """Read the account and every reservation in it."""
    reads = (call("get_reservation", reservation_id=trip.key) for trip in mine(draft))
    return (*_verify(draft), account(draft), *reads)


def able_on(draft: StoryDraft, trip: Trip, day: str) -> list[Flight]:
    """The flights of a day on which a reservation has room, the cheapest first."""
    flights: list[Flight] = draft.db.rows("flights")
    able = [
        f for f in flights if (f.route, f.date, f.status) == (trip.flight.route, day, "scheduled")
        and f.seats[trip.place] >= len(trip.found.passengers)
    ]  # fmt: skip
    return sorted(able, key=lambda f: f.prices[trip.place])


def cheapest_alone(cabin: str, flights: Sequence[Flight]) -> Flight | None:
    """The first of the flights, where no other costs as little."""
    place = CABINS.index(cabin)
    if not flights or (len(flights) > 1 and flights[0].prices[place] == flights[1].prices[place]):
        return None
    return flights[0]


def search(flight: Flight, day: str) -> PlanStep:
    return call("search_flights", origin=flight.origin, destination=flight.destination, date=day)
