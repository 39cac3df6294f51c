"""What the airline's customers want done in two ways at once, or by another trip of theirs."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.airline import wishes
from turnwise.envs.toolworld.airline.parts import (
    ALONE,
    able_on,
    books_for,
    cheapest_alone,
    named,
    new_surname,
    own_trip,
    verify,
)
from turnwise.envs.toolworld.airline.rules import compensation, may_cancel
from turnwise.envs.toolworld.airline.several import granted
from turnwise.envs.toolworld.airline.state import CABINS, DAYS, TODAY, AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.alternatives import WishPart, confirmed, joined
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, call, tell
from turnwise.envs.toolworld.vocabulary import FIRST, LAST

_RUNS = ("scheduled", "delayed")


def two_for_one(draft: StoryDraft) -> Stage | None:
    """Two things for one trip."""
    pair = own_trip(draft, lambda r, f: f.status in _RUNS and not r.meal)
    if pair is None:
        return None
    found, flight = pair
    which, look = named(draft, *pair)
    makes = _makes(draft, found, flight)
    names = draft.rng.sample(sorted(makes.keys() - {"cancel", "move"}), 2)
    if "cabin" in names and {"meal", "bags"} & {*names}:
        return None  # what they cost would depend on which comes first
    one, other = makes[names[0]](which), makes[names[1]]("the same trip")
    return joined(draft, (*verify(draft), *_with_customer(draft, look)), one, other)


def two_trips(draft: StoryDraft) -> Stage | None:
    """Something for one trip, and something for another."""
    pairs = [own_trip(draft, lambda r, f: f.status in _RUNS) for _ in range(2)]
    parts, looks = list[WishPart](), list[PlanStep]()
    for pair in pairs:
        if pair is None:
            return None
        makes = _makes(draft, *pair)
        parts.append(makes[draft.rng.choice(sorted(makes))](f"reservation {pair[0].reservation_id}"))
        looks.append(call("get_reservation", reservation_id=pair[0].reservation_id))
    read = (
        (call("get_customer", user_id=draft.customer),) if draft.rng.random() < 0.5 or _counts(parts) else ()
    )
    return joined(draft, (*verify(draft), *read, *looks), parts[0], parts[1])


def _counts(parts: list[WishPart]) -> bool:
    """Whether bags are added, which needs to know the customer's membership."""
    return any(step.name == "add_bags" for part in parts for step in part.steps)


def _with_customer(draft: StoryDraft, look: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """The same after a look at the account."""
    return look if look[0].name == "get_customer" else (call("get_customer", user_id=draft.customer), *look)


def _makes(draft: StoryDraft, found: Reservation, flight: Flight) -> dict[str, Callable[[str], WishPart]]:
    """What can be done with a trip whose flight is still to come."""
    makes: dict[str, Callable[[str], WishPart]] = {
        "bags": lambda it: wishes.bags(draft, it, draft.rng.randint(1, 3), found),
    }
    if not found.meal:
        makes["meal"] = lambda it: wishes.meal(draft, it, draft.rng.choice(wishes.MEALS), found)
    if not found.insured and flight.status == "scheduled":
        makes["insure"] = lambda it: wishes.insure(draft, it, found)
    if len(found.passengers) > 1:
        old = found.passengers[1]
        new = new_surname(draft, old)
        makes["rename"] = lambda it: wishes.rename(draft, it, old, new, found)
    if found.cabin != "business" and flight.seats[2] >= len(found.passengers):
        makes["cabin"] = lambda it: wishes.cabin(draft, it, "business", found, flight)
    if may_cancel(found, flight):
        makes["cancel"] = lambda it: wishes.cancel(draft, it, found)
    return makes


def cancel_and_claim(draft: StoryDraft) -> Stage | None:
    """A refund and compensation for a flight that the airline cancelled."""
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    pair = own_trip(draft, lambda r, f: f.status == "cancelled" and compensation(user, r, f) > 0)
    if pair is None:
        return None
    which, look = named(draft, *pair)
    first = wishes.cancel(draft, which, pair[0])
    second = wishes.claim(draft, "the flight that you cancelled", *pair)
    return joined(draft, (*verify(draft), *_with_customer(draft, look)), first, second)


def move_and(draft: StoryDraft) -> Stage | None:
    """Another day, and something for the trip."""
    pair = own_trip(draft, lambda r, f: r.cabin != "basic" and f.status == "scheduled")
    if pair is None:
        return None
    found, old = pair
    day = draft.rng.choice([day for day in DAYS if day > TODAY and day != old.date])
    new = cheapest_alone(found, able_on(draft, found, old, day))
    able = [p for p in granted(draft, "it", pair) if "cancel" not in p.steps[0].text]
    if new is None or not able:
        return None
    which, look = named(draft, *pair)
    first = wishes.move(draft, which, f"the cheapest flight on {day}", found, new)
    second = draft.rng.choice(able)
    search = call("search_flights", origin=old.origin, destination=old.destination, date=day)
    return joined(draft, (*verify(draft), *_with_customer(draft, look), search), first, second)


def _book(draft: StoryDraft, flight: Flight, cabin: str, passenger: str) -> WishPart:
    price = flight.prices[CABINS.index(cabin)]
    write = call(
        "book_flight", user_id=draft.customer, flight_id=flight.flight_id, cabin=cabin, passengers=[passenger]
    )  # fmt: skip
    what = f"book flight {flight.flight_id} in {cabin} for {passenger} at {dollars(price)} in total"
    fact = Fact("money", str(price))
    return WishPart(
        "",
        confirmed(what, write),
        f"The new booking costs {dollars(price)}.",
        (fact,),
        "What does the new booking cost?",
    )


def cancel_and_book(draft: StoryDraft) -> Stage | None:
    """One trip given up, and a new one of the same route on another day."""
    pair = own_trip(draft, may_cancel)
    if pair is None:
        return None
    found, old = pair
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    single = found._replace(cabin="economy", passengers=(user.name,))
    day = draft.rng.choice([day for day in DAYS if day > TODAY and day != old.date])
    new = cheapest_alone(single, able_on(draft, single, old, day))
    if new is None or not books_for(draft, ALONE):
        return None
    which, look = named(draft, *pair)
    first = wishes.cancel(draft, which, found)
    second = draft.words(
        f"book me alone the cheapest economy seat of the same route on {day}, and tell me its price",
        f"reserve for me alone the cheapest seat in economy between the same airports on {day}, and name the price",
        f"buy a single economy ticket in my name for the cheapest flight of that route on {day}, and say what it costs",
        f"find the cheapest economy flight from and to the same places on {day} and book it for me only; what does it cost",
        f"book an economy seat for me on the cheapest flight of just that route on {day}, and let me know the price",
        f"make a new booking in economy, the cheapest on {day} for the same route, only for me, and tell me what I pay",
    )
    search = call("search_flights", origin=old.origin, destination=old.destination, date=day)
    part = _book(draft, new, "economy", user.name)._replace(say=second)
    return joined(draft, (*verify(draft), *_with_customer(draft, look), search), first, part)


def book_beside(draft: StoryDraft) -> Stage | None:
    """A booking for somebody else on the flight of a trip."""
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and f.seats[CABINS.index(r.cabin)] > 0)
    if pair is None:
        return None
    found, flight = pair
    which, look = named(draft, *pair)
    who = f"{draft.rng.choice(FIRST)} {draft.rng.choice(LAST)}"
    if not books_for(draft, f"The passenger is {who}."):
        return None
    say = draft.words(
        f"Book a separate seat for {who} on the flight of {which}, in the same cabin. What does it cost?",
        f"My friend {who} needs the same flight and also the same cabin as {which}: make a booking of its own. How much is it?",
        f"Please make an additional booking for {who} that is like {which} in flight and cabin. What is the price?",
        f"Make a reservation of its own for {who}: same plane and same cabin as {which}. What will I pay?",
        f"Apart from {which}, I need a booking for {who} on that very flight and in that cabin. Tell me the price.",
        f"Take flight and cabin from {which} and book them once again, for {who} only. What do you charge?",
    )
    part = _book(draft, flight, found.cabin, who)
    plan = (*verify(draft), *look, *part.steps, tell(part.report))
    return Stage(say, plan, part.tells, again=part.again)


def cheaper_day(draft: StoryDraft) -> Stage | None:
    """The cheapest flight of two days."""
    pair = own_trip(draft, lambda r, f: r.cabin != "basic" and f.status in _RUNS)
    if pair is None:
        return None
    found, old = pair
    days = sorted(draft.rng.sample([day for day in DAYS if day > TODAY and day != old.date], 2))
    able = [able_on(draft, found, old, day) for day in days]
    both = sorted((f for flights in able for f in flights), key=lambda f: f.prices[CABINS.index(found.cabin)])
    new = cheapest_alone(found, both)
    if not all(able) or new is None:
        return None
    which, look = named(draft, *pair)
    one, other = days
    say = draft.words(
        f"Move {which} to {one} or {other}, whichever of the two days has the cheaper flight.",
        f"I can travel on {one} or on {other} instead: put {which} on the cheapest flight of both days.",
        f"Compare {one} with {other}, and rebook {which} to the flight that costs least on these two days.",
        f"Either {one} or {other} suits me for {which}; change it to the cheapest flight that you find on them.",
        f"Change {which} to the cheapest flight there is on {one} and {other} taken together.",
        f"Would you look at {one} and {other}, and switch {which} to the least expensive flight of the two days?",
    )
    find = tuple(
        call("search_flights", origin=old.origin, destination=old.destination, date=day) for day in days
    )
    part = wishes.move(draft, "", "", found, new)
    return Stage(say, (*verify(draft), *look, *find, *part.steps, tell(part.report)))
