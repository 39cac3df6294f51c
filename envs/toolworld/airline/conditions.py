"""What the airline's customers want done by what the agent finds out: one thing or another."""

from __future__ import annotations

from collections.abc import Callable

from turnwise.envs.toolworld.airline import wishes
from turnwise.envs.toolworld.airline.parts import able_on, cheapest_alone, named, own_trip, verify
from turnwise.envs.toolworld.airline.rules import compensation, may_cancel, paid_bags
from turnwise.envs.toolworld.airline.state import BAG_PRICE, DAYS, TODAY, AirlineCustomer, Flight, Reservation
from turnwise.envs.toolworld.alternatives import WishPart, decided
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, call

_RUNS = ("scheduled", "delayed")


def _reading(draft: StoryDraft, pair: tuple[Reservation, Flight]) -> tuple[str, tuple[PlanStep, ...]]:
    """How a trip is named, and the steps until it is read."""
    which, look = named(draft, *pair)
    return which, (*verify(draft), *look)


def _extra(draft: StoryDraft, found: Reservation, flight: Flight, *but: str) -> WishPart:
    """Something else that could be done with the trip."""
    able = {
        "meal": not found.meal and flight.status in _RUNS,
        "insure": not found.insured and flight.status == "scheduled",
        "bags": flight.status in _RUNS,
    }
    kind = draft.rng.choice([name for name, fits in able.items() if fits and name not in but] or ["bags"])
    if kind == "meal":
        return wishes.meal(draft, "it", draft.rng.choice(wishes.MEALS), found)
    if kind == "insure":
        return wishes.insure(draft, "it", found)
    return wishes.bags(draft, "it", draft.rng.randint(1, 3), found)


def _departure(draft: StoryDraft, flight: Flight) -> WishPart:
    fact = Fact("time", flight.departs)
    report = f"It leaves at {flight.departs}, and nothing was changed."
    return wishes.leave(draft, "its time of departure", fact, report)


def _with_customer(draft: StoryDraft, look: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """The same, with a look at the account where there was none."""
    read = call("get_customer", user_id=draft.customer)
    return look if any(step.name == "get_customer" for step in look) else (*look, read)


def refundable_or(draft: StoryDraft) -> Stage | None:
    """Cancelled if the rules allow it, else made the best of."""
    holds = draft.rng.random() < 0.5
    pair = own_trip(draft, lambda r, f: f.status in _RUNS and may_cancel(r, f) is holds)
    if pair is None:
        return None
    which, look = _reading(draft, pair)
    condition = draft.words(
        f"your rules let me cancel {which}",
        f"{which} can be cancelled under your rules",
        f"{which} may be cancelled by your rules",
        f"the rules allow {which} to be cancelled",
        f"by the rules {which} is one that I can cancel",
        f"I am allowed to cancel {which}",
    )
    other = _extra(draft, *pair) if draft.rng.random() < 0.7 else _departure(draft, pair[1])
    return decided(draft, look, condition, (wishes.cancel(draft, "it", pair[0]), other), holds=holds)


def insured_or(draft: StoryDraft) -> Stage | None:
    """Cancelled where it is insured, insured where it is not."""
    fresh, holds = not draft.used, draft.rng.random() < 0.5
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and (fresh or r.insured is holds))
    if pair is None:
        return None
    if pair[0].insured is not holds:  # few are insured
        draft.override("reservations", pair[0].reservation_id, insured=holds)
        pair = pair[0]._replace(insured=holds), pair[1]
    which, look = _reading(draft, pair)
    cancel, insure = wishes.cancel(draft, "it", pair[0]), wishes.insure(draft, "it", pair[0])
    if draft.rng.random() < 0.5:
        condition = draft.words(
            f"{which} is insured", f"there is insurance on {which}", f"I took insurance for {which}",
            f"{which} has insurance", f"insurance was taken for {which}", f"{which} came with insurance",
        )  # fmt: skip
        return decided(draft, look, condition, (cancel, insure), holds=holds)
    condition = draft.words(
        f"{which} is not insured yet", f"there is no insurance on {which}", f"I forgot to insure {which}",
        f"{which} has no insurance", f"no insurance was taken for {which}", f"{which} came without insurance",
    )  # fmt: skip
    return decided(draft, look, condition, (insure, _extra(draft, *pair, "insure")), holds=not holds)


def _limit(draft: StoryDraft, amount: int, *, within: bool) -> int:
    """Whole dollars, in cents: at least the amount, or less than it."""
    steps = draft.rng.randint(0, 9)
    if within:
        return (-(-amount // 100) + steps) * 100
    return max(1, (amount - 1) // 100 - steps) * 100


def _instead(draft: StoryDraft, found: Reservation, flight: Flight) -> WishPart | None:
    """What somebody may want who does not want to be moved."""
    able = [lambda: _extra(draft, found, flight)]
    if found.cabin == "economy" and flight.status in _RUNS and flight.seats[2] >= len(found.passengers):
        able.append(lambda: wishes.cabin(draft, "it", "business", found, flight))
    if may_cancel(found, flight):
        able.append(lambda: wishes.cancel(draft, "it", found))
    return draft.rng.choice(able)()


def _movable(draft: StoryDraft) -> tuple[Reservation, Flight, Flight] | None:
    """A trip that may be moved, and the cheapest flight of another day."""
    pair = own_trip(draft, lambda r, f: r.cabin != "basic" and f.status in _RUNS)
    if pair is None:
        return None
    day = draft.rng.choice([day for day in DAYS if day > TODAY and day != pair[1].date])
    new = cheapest_alone(pair[0], able_on(draft, *pair, day))
    return None if new is None else (*pair, new)


def move_within(draft: StoryDraft) -> Stage | None:
    """Another day, if that is not too dear."""
    found = _movable(draft)
    if found is None or (cost := wishes.difference(found[0], found[2])) < 200:
        return None
    trip, old, new = found
    holds = draft.rng.random() < 0.5
    limit = dollars(_limit(draft, cost, within=holds))
    which, look = _reading(draft, (trip, old))
    condition = draft.words(
        f"the cheapest flight of {new.date} costs at most {limit} more in all than {which}",
        f"moving {which} to the cheapest flight on {new.date} comes to no more than {limit} in total",
        f"I pay {limit} at most in total for a move of {which} to the cheapest flight on {new.date}",
        f"it takes no more than {limit} altogether to put {which} on the cheapest flight of {new.date}",
        f"the total difference between {which} and the cheapest flight on {new.date} is {limit} or less",
        f"a change of {which} to the cheapest flight of {new.date} is to be had for {limit} in all, or for less",
    )
    fact = Fact("money", str(cost))
    other = wishes.leave(
        draft, "the difference in total", fact, f"The difference is {dollars(cost)}, so nothing was changed."
    )  # fmt: skip
    if draft.rng.random() < 0.6:
        other = _instead(draft, trip, old) or other
    look = (*look, call("search_flights", origin=old.origin, destination=old.destination, date=new.date))
    move = wishes.move(draft, "it", "that flight", trip, new)
    return decided(draft, look, condition, (move, other), holds=holds)


def leaves_by(draft: StoryDraft) -> Stage | None:
    """Another day, if the flight leaves early enough."""
    found = _movable(draft)
    if found is None:
        return None
    trip, old, new = found
    hour, holds = int(new.departs[:2]), draft.rng.random() < 0.5
    limit = min(23, hour + draft.rng.randint(1, 4)) if holds else max(4, hour - draft.rng.randint(0, 3))
    time = f"{limit:02}:00"
    which, look = _reading(draft, (trip, old))
    condition = draft.words(
        f"the cheapest flight that {which} can be moved to on {new.date} leaves before {time}",
        f"on {new.date} the cheapest flight for {which} takes off before {time}",
        f"the cheapest alternative to {which} on {new.date} departs earlier than {time}",
        f"the cheapest flight for {which} on {new.date} leaves earlier in the day than {time}",
        f"the cheapest replacement for {which} on {new.date} starts before {time}",
        f"what is cheapest for {which} on {new.date} leaves sooner than {time}",
    )
    fact = Fact("time", new.departs)
    report = f"That flight leaves at {new.departs}, so nothing was changed."
    other = wishes.leave(draft, "that flight's time of departure", fact, report)
    if draft.rng.random() < 0.5:
        other = _instead(draft, trip, old) or other
    look = (*look, call("search_flights", origin=old.origin, destination=old.destination, date=new.date))
    move = wishes.move(draft, "it", "that flight", trip, new)
    return decided(draft, look, condition, (move, other), holds=holds)


def upgrade_within(draft: StoryDraft) -> Stage | None:
    """Business, if that is not too dear."""
    pair = own_trip(
        draft, lambda r, f: f.status in _RUNS and r.cabin != "business" and f.seats[2] >= len(r.passengers)
    )
    if pair is None:
        return None
    found, flight = pair
    cost, holds = (flight.prices[2] - found.price) * len(found.passengers), draft.rng.random() < 0.5
    limit = dollars(_limit(draft, cost, within=holds))
    which, look = _reading(draft, pair)
    condition = draft.words(
        f"business on {which} costs no more than {limit} extra in total",
        f"an upgrade of {which} to business comes to {limit} at most, all passengers together",
        f"I can have business on {which} for a surcharge of {limit} in all, or for less",
        f"the surcharge for business on {which} is at most {limit} altogether",
        f"going up to business on {which} takes at most {limit} in total",
        f"for business on {which} we pay no more than {limit} on top, all together",
    )
    upgrade = wishes.cabin(draft, "it", "business", found, flight)
    fact = Fact("money", str(cost))
    report = f"The upgrade would cost {dollars(cost)}, so nothing was changed."
    other = wishes.leave(draft, "the price of the upgrade in total", fact, report)
    if draft.rng.random() < 0.6:
        other = _extra(draft, *pair)
    return decided(draft, look, condition, (upgrade, other), holds=holds)


def seats_left(draft: StoryDraft) -> Stage | None:
    """Business, if it is empty enough."""
    pair = own_trip(draft, lambda r, f: f.status in _RUNS and r.cabin != "business")
    if pair is None:
        return None
    found, flight = pair
    left, least, holds = flight.seats[2], len(found.passengers), draft.rng.random() < 0.5
    if holds and left < least:
        return None
    number = (
        draft.rng.randint(least, left)
        if holds
        else draft.rng.randint(max(left + 1, least), max(left + 1, least) + 2)
    )
    number = max(number, 2)
    which, look = _reading(draft, pair)
    condition = draft.words(
        f"at least {number} seats are free in business on the flight of {which}",
        f"business on the flight of {which} has {number} free seats or more",
        f"there are no fewer than {number} seats left in business on the flight of {which}",
        f"business on the flight of {which} still has at least {number} seats",
        f"I find {number} or more free places in business on the flight of {which}",
        f"not fewer than {number} business seats are left on the flight of {which}",
    )
    upgrade = wishes.cabin(draft, "it", "business", found, flight)
    fact = Fact("count", str(left))
    report = f"There are {left} seats left in business, so nothing was changed."
    other = wishes.leave(draft, "the number of free business seats", fact, report)
    if draft.rng.random() < 0.5:
        other = _extra(draft, *pair)
    return decided(draft, look, condition, (upgrade, other), holds=left >= number)


def _not_on_time(
    draft: StoryDraft, fits: Callable[[Reservation, Flight], bool], *statuses: str
) -> tuple[Reservation, Flight] | None:
    """A trip whose flight is not on time; few are, so it is made late where the story only begins."""
    if draft.used:
        return own_trip(draft, lambda r, f: f.status in statuses and fits(r, f))
    status = draft.rng.choice(statuses)
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and fits(r, f._replace(status=status)))
    if pair is None:
        return None
    draft.override("flights", pair[1].flight_id, status=status)
    return pair[0], pair[1]._replace(status=status)


def late_or(draft: StoryDraft) -> Stage | None:
    """Compensation for a flight that is not on time, else something for the trip."""
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    holds = draft.rng.random() < 0.5
    if holds:
        pair = _not_on_time(draft, lambda r, f: compensation(user, r, f) > 0, "delayed", "cancelled")
    else:
        pair = own_trip(draft, lambda r, f: f.status == "scheduled")
    if pair is None:
        return None
    which, look = _reading(draft, pair)
    condition = draft.words(
        f"the flight of {which} is delayed or cancelled",
        f"you have delayed or cancelled the flight of {which}",
        f"there is a delay of {which}, or its flight is cancelled",
        f"the flight of {which} is no longer on time, or is cancelled",
        f"the plane of {which} was delayed, or cancelled altogether",
        f"{which} has a flight that is late or cancelled",
    )
    other = _departure(draft, pair[1]) if draft.rng.random() < 0.4 else _extra(draft, *pair)
    claim = wishes.claim(draft, "that", *pair)
    if not holds:
        claim = claim._replace(steps=(call("issue_certificate"),))  # its amount is never asked for
    return decided(draft, _with_customer(draft, look), condition, (claim, other), holds=holds)


def grounded_or(draft: StoryDraft) -> Stage | None:
    """A refund where the airline cancelled the flight, else something for the trip."""
    holds = draft.rng.random() < 0.5
    if holds:
        pair = _not_on_time(draft, lambda r, f: True, "cancelled")
    else:
        pair = own_trip(draft, lambda r, f: f.status == "scheduled")
    if pair is None:
        return None
    which, look = _reading(draft, pair)
    condition = draft.words(
        f"the flight of {which} was cancelled by you",
        f"you have cancelled the flight of {which}",
        f"the airline has cancelled the flight of {which}",
        f"the flight of {which} does not take place because you cancelled it",
        f"your company cancelled the flight of {which}",
        f"the flight of {which} is a cancelled one",
    )
    other = _departure(draft, pair[1]) if draft.rng.random() < 0.4 else _extra(draft, *pair)
    return decided(
        draft, look, condition, (wishes.cancel(draft, "my reservation", pair[0]), other), holds=holds
    )


def bags_free(draft: StoryDraft) -> Stage | None:
    """Bags, if they cost nothing."""
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    number, holds = draft.rng.randint(1, 4), draft.rng.random() < 0.5
    pair = own_trip(draft, lambda r, f: f.status in _RUNS and (paid_bags(user, r, number) == 0) is holds)
    if pair is None:
        return None
    which, look = _reading(draft, pair)
    many = f"{number} bag{'s' * (number > 1)}"
    condition = draft.words(
        f"I can add {many} to {which} without paying for any",
        f"{many} can be added to {which} free of charge",
        f"{which} leaves me {many} to add for free",
        f"adding {many} to {which} costs me nothing",
        f"I have nothing to pay for {many} added to {which}",
        f"no fee is due for {many} added to {which}",
    )
    paid = BAG_PRICE * paid_bags(user, pair[0], number)
    report = f"It would be {dollars(paid)}, so nothing was changed."
    other = wishes.leave(draft, "the price of it", Fact("money", str(paid)), report)
    if draft.rng.random() < 0.4:
        other = _extra(draft, *pair, "bags")
    add = wishes.bags(draft, "it", number, pair[0])
    return decided(draft, _with_customer(draft, look), condition, (add, other), holds=holds)


def downgrade_for(draft: StoryDraft) -> Stage | None:
    """Economy, if enough comes back."""
    pair = own_trip(
        draft, lambda r, f: f.status in _RUNS and r.cabin == "business" and f.seats[1] >= len(r.passengers)
    )
    back = (pair[0].price - pair[1].prices[1]) * len(pair[0].passengers) if pair else 0
    if pair is None or back < 200:
        return None
    holds = draft.rng.random() < 0.5
    limit = dollars(
        _limit(draft, back + 100, within=True) if not holds else _limit(draft, back + 1, within=False)
    )
    which, look = _reading(draft, pair)
    condition = draft.words(
        f"I get back at least {limit} in total when {which} goes down to economy",
        f"a change of {which} to economy returns {limit} or more in all",
        f"economy on {which} saves us at least {limit} altogether",
        f"{which} is at least {limit} cheaper in all when we sit in economy",
        f"we are refunded no less than {limit} in total for economy on {which}",
        f"going down to economy on {which} is worth {limit} or more in all",
    )
    down = wishes.cabin(draft, "it", "economy", *pair)
    report = f"It would be {dollars(back)}, so nothing was changed."
    other = wishes.leave(draft, "the amount that would come back", Fact("money", str(back)), report)
    if draft.rng.random() < 0.5:
        other = _extra(draft, *pair)
    return decided(draft, look, condition, (down, other), holds=holds)
