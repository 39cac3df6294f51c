"""What the airline's customers want."""

from __future__ import annotations

from turnwise.envs.toolworld.airline import asking, conditions, language, pairs, questions, several, traps
from turnwise.envs.toolworld.airline.actions import ACTS
from turnwise.envs.toolworld.airline.parts import (
    ALONE,
    act_on,
    books_for,
    enter,
    named,
    new_surname,
    own_trip,
    verify,
)
from turnwise.envs.toolworld.airline.policy import POLICY
from turnwise.envs.toolworld.airline.rules import compensation, may_cancel, paid_bags, rules
from turnwise.envs.toolworld.airline.state import (
    CABINS,
    DAYS,
    INSURANCE_PRICE,
    MEAL_PRICE,
    TODAY,
    AirlineCustomer,
    Flight,
    Reservation,
    build,
)
from turnwise.envs.toolworld.domain import Domain, StoryDraft
from turnwise.envs.toolworld.facts import dollars
from turnwise.envs.toolworld.story import PlanStep, Stage, ask, call, tell
from turnwise.envs.toolworld.vocabulary import counted


def _cancel(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, may_cancel)
    if pair is None:
        return None
    which, look = named(draft, *pair)
    key, refund = pair[0].reservation_id, pair[0].price * len(pair[0].passengers)
    asked = asking.question(draft, *asking.REFUND)
    say = asking.cancel(draft, which, asked)
    return act_on(
        draft, say, look, f"cancel reservation {key}", "cancel_reservation", refund, asked, reservation_id=key
    )


def _move(draft: StoryDraft) -> Stage | None:
    """The cheapest flight of another day that has seats; at times another day after all."""
    pair = own_trip(draft, lambda r, f: r.cabin != "basic" and f.status != "flown")
    if pair is None:
        return None
    found, old = pair
    place, n = CABINS.index(found.cabin), len(found.passengers)
    best: dict[str, Flight] = {}
    for day in (day for day in DAYS if day > TODAY and day != old.date):
        able = [
            f for f in draft.db.rows("flights")
            if (f.origin, f.destination, f.date) == (old.origin, old.destination, day)
            and f.status == "scheduled" and f.seats[place] >= n
        ]  # fmt: skip
        able.sort(key=lambda f: f.prices[place])
        if able and (len(able) == 1 or able[0].prices[place] < able[1].prices[place]):
            best[day] = able[0]
    if len(best) < 2:
        return None
    first, second = draft.rng.sample(sorted(best), 2)
    twisted = draft.changes_mind
    new = best[second if twisted else first]
    which, look = named(draft, found, old)
    say = asking.move(draft, which, first)
    find = call("search_flights", origin=old.origin, destination=old.destination, date=new.date)
    key = found.reservation_id

    def confirm(flight: Flight) -> str:
        cost = dollars(n * (flight.prices[place] - found.price))
        return f"I will move reservation {key} to flight {flight.flight_id}; the difference is {cost}. Shall I proceed?"

    other = draft.words(
        f"Hm, wait. Rather the cheapest one on {second}.", f"Actually, make it {second}, the cheapest one.",
        f"No, {second} suits me better. The cheapest of that day.", f"I have looked again: the cheapest one on {second}, please.",
    )  # fmt: skip
    before = (PlanStep("propose", confirm(best[first])),) if twisted else ()
    plan = (
        *verify(draft), *look, *before, find,
        PlanStep("confirm", confirm(new)),
        call("change_flight", reservation_id=found.reservation_id, new_flight_id=new.flight_id),
        tell("Done, the flight is changed."),
    )  # fmt: skip
    return Stage(say, plan, twist=other if twisted else "")


def _cabin(draft: StoryDraft) -> Stage | None:
    def fits(r: Reservation, f: Flight) -> bool:
        return (
            f.status in ("scheduled", "delayed") and r.cabin != "business" and f.seats[2] >= len(r.passengers)
        )

    pair = own_trip(draft, fits)
    if pair is None:
        return None
    found, flight = pair
    which, look = named(draft, *pair)
    price = (flight.prices[2] - found.price) * len(found.passengers)
    asked = asking.question(draft, *asking.PRICE)
    say = asking.upgrade(draft, which, asked)
    return act_on(
        draft, say, look, f"upgrade reservation {found.reservation_id} to business", "change_cabin", price, asked,
        reservation_id=found.reservation_id, cabin="business",
    )  # fmt: skip


def _bags(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status in ("scheduled", "delayed"))
    if pair is None:
        return None
    found = pair[0]
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    bags = draft.rng.randint(1, 4)
    paid = paid_bags(user, found, bags)
    which, look = named(draft, *pair)
    if look[0].name != "get_customer":
        look = (call("get_customer", user_id=draft.customer), *look)
    asked = asking.question(draft, *asking.PRICE)
    say = asking.bags(draft, which, bags, asked)
    what = f"add {counted(bags, 'bag')} to {found.reservation_id}, {paid} of them paid"
    return act_on(
        draft, say, look, what, "add_bags", 5000 * paid, asked, reservation_id=found.reservation_id, bags=bags, paid_bags=paid
    )  # fmt: skip


def _name(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status != "flown" and len(r.passengers) > 1)
    if pair is None:
        return None
    found, old = pair[0], pair[0].passengers[1]
    new = new_surname(draft, old)
    which, look = named(draft, *pair)
    say = asking.rename(draft, which, old, new)
    return act_on(
        draft, say, look, f"change the name {old} to {new}", "rename_passenger",
        reservation_id=found.reservation_id, old_name=old, new_name=new,
    )  # fmt: skip


def _compensate(draft: StoryDraft) -> Stage | None:
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    pair = own_trip(draft, lambda r, f: compensation(user, r, f) > 0)
    if pair is None:
        return None
    amount = compensation(user, *pair)
    which, look = named(draft, *pair)
    asked = asking.question(draft, *asking.AMOUNT)
    say = asking.claim(draft, which, pair[1].status if draft.rng.random() < 0.6 else "", asked)
    return act_on(
        draft, say, look, f"issue a certificate of ${amount}", "issue_certificate", 100 * amount, asked,
        user_id=user.user_id, amount_dollars=amount,
    )  # fmt: skip


def _book(draft: StoryDraft) -> Stage | None:
    flights: list[Flight] = [
        f for f in draft.db.rows("flights") if f.status == "scheduled" and f.date > TODAY and f.seats[1] > 0
    ]
    wish = draft.free(flights, lambda f: f"{f.origin}{f.destination}{f.date}")
    if wish is None or not books_for(draft, ALONE):
        return None
    like = [
        f for f in flights if (f.origin, f.destination, f.date) == (wish.origin, wish.destination, wish.date)
    ]
    like.sort(key=lambda f: f.prices[1])
    if len(like) > 1 and like[0].prices[1] == like[1].prices[1]:
        return None
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    say = (
        draft.words(
            f"Book me the cheapest economy seat from {wish.origin} to {wish.destination} on {wish.date}.",
            f"I need to get from {wish.origin} to {wish.destination} on {wish.date}, economy, as cheap as possible. Book it.",
            f"Find the cheapest economy ticket from {wish.origin} to {wish.destination} for {wish.date} and book it for me.",
            f"A seat in economy, {wish.origin} to {wish.destination}, {wish.date}, whichever is cheapest: please book it.",
        )
        + " "
        + draft.words(
            "It must not be delayed. What do I pay?",
            "No delayed flight, please. What is the price?",
            "It has to be on time. How much is it?",
            "Only one that is not delayed. What will it cost?",
        )
    )
    find = (
        call("get_customer", user_id=user.user_id),
        call("search_flights", origin=wish.origin, destination=wish.destination, date=wish.date),
        ask("Who will be travelling?", "passengers"),
    )
    return act_on(
        draft, say, find, f"book flight {like[0].flight_id}", "book_flight", like[0].prices[1], "asked at once",
        user_id=user.user_id, flight_id=like[0].flight_id, cabin="economy", passengers=[user.name],
    )  # fmt: skip


def _downgrade(draft: StoryDraft) -> Stage | None:
    pair = own_trip(
        draft,
        lambda r, f: (
            f.status in ("scheduled", "delayed") and r.cabin == "business" and f.seats[1] >= len(r.passengers)
        ),
    )
    if pair is None:
        return None
    found, flight = pair
    back = (found.price - flight.prices[1]) * len(found.passengers)
    if back <= 0:
        return None
    which, look = named(draft, *pair)
    asked = asking.question(draft, *asking.REFUND)
    say = asking.downgrade(draft, which, asked)
    return act_on(
        draft, say, look, f"change reservation {found.reservation_id} to economy and refund the difference", "change_cabin",
        back, asked, reservation_id=found.reservation_id, cabin="economy",
    )  # fmt: skip


def _meal(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status in ("scheduled", "delayed") and not r.meal)
    if pair is None:
        return None
    found = pair[0]
    meal = draft.rng.choice(("vegetarian", "vegan", "kosher", "halal"))
    cost = 0 if found.cabin == "business" else MEAL_PRICE * len(found.passengers)
    which, look = named(draft, *pair)
    asked = asking.question(draft, *asking.PRICE)
    say = asking.meal(draft, which, meal, asked)
    return act_on(
        draft, say, look, f"order a {meal} meal for all passengers of {found.reservation_id}", "add_meal", cost, asked,
        reservation_id=found.reservation_id, meal=meal,
    )  # fmt: skip


def _insurance(draft: StoryDraft) -> Stage | None:
    pair = own_trip(draft, lambda r, f: f.status == "scheduled" and not r.insured)
    if pair is None:
        return None
    found = pair[0]
    cost = INSURANCE_PRICE * len(found.passengers)
    which, look = named(draft, *pair)
    asked = asking.question(draft, *asking.PRICE)
    say = asking.insure(draft, which, asked)
    return act_on(
        draft, say, look, f"add insurance to reservation {found.reservation_id}", "add_insurance", cost, asked,
        reservation_id=found.reservation_id,
    )  # fmt: skip


DOMAIN = Domain(
    name="airline",
    policy=POLICY,
    build=build,
    acts=ACTS,
    requests={
        "cancel": _cancel, "move": _move, "cabin": _cabin, "bags": _bags, "name": _name, "compensate": _compensate,
        "book": _book, "downgrade": _downgrade, "meal": _meal, "insurance": _insurance, "status": questions.status,
        "departure": questions.departure, "seats": questions.seats, "fare": questions.fare, "credit": questions.credit,
        "refundable_or": conditions.refundable_or, "insured_or": conditions.insured_or, "move_within": conditions.move_within,
        "leaves_by": conditions.leaves_by, "upgrade_within": conditions.upgrade_within, "seats_left": conditions.seats_left,
        "late_or": conditions.late_or, "grounded_or": conditions.grounded_or, "bags_free": conditions.bags_free,
        "downgrade_for": conditions.downgrade_for, "one_of": several.one_of, "one_and_rest": several.one_and_rest,
        "all_trips": several.all_trips, "whichever": several.whichever, "two_for_one": pairs.two_for_one, "two_trips": pairs.two_trips,
        "cancel_and_claim": pairs.cancel_and_claim, "cancel_and_book": pairs.cancel_and_book, "book_beside": pairs.book_beside,
        "cheaper_day": pairs.cheaper_day, "move_and": pairs.move_and,
    },
    traps={
        "cancel": traps.no_cancel, "move": traps.no_move, "compensate": traps.no_money, "passengers": traps.no_seat,
        "flown": traps.too_late, "not_owner": traps.foreign, "transfer": traps.transfer,
        "changed_late": traps.changed_late, "route": traps.other_route, "fewer": traps.fewer, "insurance_late": traps.insurance_late,
    },
    enter=enter,
    slots=language.SLOTS,
    identity=language.IDENTITY,
    senses=language.SENSES,
    patterns=language.PATTERNS,
    tells_cost=True,
    rules=rules,
)  # fmt: skip
