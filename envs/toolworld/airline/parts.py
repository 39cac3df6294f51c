"""What the airline's stories are put together from: the customer, a trip, a deed that needs a yes."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.airline.state import CABINS, AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell
from turnwise.envs.toolworld.vocabulary import LAST
from turnwise.tasks.core import Json


def enter(draft: StoryDraft) -> bool:
    user: AirlineCustomer = draft.rng.choice(draft.db.rows("users"))
    draft.customer = user.user_id
    draft.facts["user_id"] = f"My user id is {user.user_id}."
    draft.facts["birthday"] = f"I was born on {user.birthday}."
    return True


def verify(draft: StoryDraft) -> tuple[PlanStep, ...]:
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    return (
        ask("What is your user id?", "user_id"),
        ask("What is your birthday?", "birthday"),
        call("verify_customer", user_id=user.user_id, birthday=user.birthday),
    )


Fits = Callable[[Reservation, Flight], bool]


def own_trip(draft: StoryDraft, fits: Fits) -> tuple[Reservation, Flight] | None:
    """One of the customer's active reservations that fits, with its flight; none that is only made in this story, whose id
    he cannot know."""
    own: list[Reservation] = [
        r
        for r in draft.db.rows("reservations")
        if r.user_id == draft.customer
        and r.status == "active"
        and draft.base.find("reservations", r.reservation_id) is not None
    ]
    found = draft.free(
        [r for r in own if fits(r, draft.db.get("flights", r.flight_id))], lambda r: r.reservation_id
    )
    return None if found is None else (found, draft.db.get("flights", found.flight_id))


def named(draft: StoryDraft, found: Reservation, flight: Flight) -> tuple[str, tuple[PlanStep, ...]]:
    own = [r for r in draft.db.rows("reservations") if r.user_id == draft.customer]
    alone = sum(db_flight(draft, r)[:2] == (flight.origin, flight.destination) for r in own) == 1
    look = call("get_reservation", reservation_id=found.reservation_id)
    if not alone or draft.rng.random() < 0.5:
        return f"reservation {found.reservation_id}", (look,)
    return f"my trip from {flight.origin} to {flight.destination}", (
        call("get_customer", user_id=draft.customer),
        look,
    )


def db_flight(draft: StoryDraft, found: Reservation) -> tuple[str, str]:
    flight: Flight = draft.db.get("flights", found.flight_id)
    return flight.origin, flight.destination


def act_on(
    draft: StoryDraft,
    say: str,
    look: tuple[PlanStep, ...],
    what: str,
    tool: str,
    cost: int | None = None,
    asked: str = "",
    **given: Json,
) -> Stage:
    """A request that is granted: verify, look, confirm, write, report; ``asked``: how he asks what it comes to, if he does."""
    fact = Fact("money", str(cost)) if asked and cost is not None else None
    report = f"Done. {f'The amount is {dollars(int(fact.value))}.' if fact else ''}".strip()
    price = "" if cost is None else f", {dollars(cost)} in total"
    confirm = PlanStep("confirm", f"I will {what}{price}. Shall I proceed?")
    plan = (*verify(draft), *look, confirm, call(tool, **given), tell(report))
    return Stage(say, plan, (fact,) if fact else (), again="What amount is that?" if fact else "")


ALONE = "It's just for me."


def books_for(draft: StoryDraft, who: str) -> bool:
    """Note for whom the customer books; False where he books for somebody else in the same story."""
    return draft.facts.setdefault("passengers", who) == who


def new_surname(draft: StoryDraft, old: str) -> str:
    """The same first name with another last name."""
    return f"{old.split()[0]} {draft.rng.choice([name for name in LAST if name not in old])}"


def coming(draft: StoryDraft) -> list[tuple[Reservation, Flight]]:
    """All trips of the customer that are to come, marked as used; none where a request is about one, or one is cancelled."""
    own: list[Reservation] = [
        r for r in draft.db.rows("reservations") if r.user_id == draft.customer and r.status == "active"
    ]
    pairs = [(r, draft.db.get("flights", r.flight_id)) for r in own]
    found = [(r, f) for r, f in pairs if f.status != "flown"]
    if any(r.reservation_id in draft.used or f.status == "cancelled" for r, f in found):
        return []
    draft.used.update(r.reservation_id for r, _ in found)
    return found


def look_at_all(draft: StoryDraft) -> tuple[PlanStep, ...]:
    """Read the account and every reservation in it."""
    own = [r for r in draft.db.rows("reservations") if r.user_id == draft.customer]
    reads = (call("get_reservation", reservation_id=r.reservation_id) for r in own)
    return (call("get_customer", user_id=draft.customer), *reads)


def able_on(draft: StoryDraft, found: Reservation, old: Flight, day: str) -> list[Flight]:
    """The flights of a day on which a reservation has room, the cheapest first."""
    place = CABINS.index(found.cabin)
    able = [
        f for f in draft.db.rows("flights")
        if (f.origin, f.destination, f.date) == (old.origin, old.destination, day)
        and f.status == "scheduled" and f.seats[place] >= len(found.passengers)
    ]  # fmt: skip
    return sorted(able, key=lambda f: f.prices[place])


def cheapest_alone(found: Reservation, flights: list[Flight]) -> Flight | None:
    """The first of the flights, where no other costs as little."""
    place = CABINS.index(found.cabin)
    if not flights or (len(flights) > 1 and flights[0].prices[place] == flights[1].prices[place]):
        return None
    return flights[0]
