"""What the airline's stories are put together from: the customer, a trip, a deed that needs a yes."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.airline.state import AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell
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
    """One of the customer's active reservations that fits, with its flight."""
    own: list[Reservation] = [
        r for r in draft.db.rows("reservations") if r.user_id == draft.customer and r.status == "active"
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
    fact: Fact | None = None,
    **given: Json,
) -> Stage:
    """A request that is granted: verify, look, confirm, write, report."""
    report = f"Done. {f'The amount is {dollars(int(fact.value))}.' if fact else ''}".strip()
    cost = f", {dollars(int(fact.value))} in total" if fact else ""
    confirm = PlanStep("confirm", f"I will {what}{cost}. Shall I proceed?")
    plan = (*verify(draft), *look, confirm, call(tool, **given), tell(report))
    return Stage(say, plan, (fact,) if fact else (), again="What amount is that?" if fact else "")
