"""What can be done with a reservation, as a part of a wish: how it is asked for, what does it, what is reported."""

from __future__ import annotations

from turnwise.envs.toolworld.airline.rules import compensation, paid_bags
from turnwise.envs.toolworld.airline.state import (
    BAG_PRICE,
    CABINS,
    INSURANCE_PRICE,
    MEAL_PRICE,
    AirlineCustomer,
    Flight,
    Reservation,
)
from turnwise.envs.toolworld.alternatives import WishPart, confirmed
from turnwise.envs.toolworld.domain import StoryDraft
from turnwise.envs.toolworld.facts import Fact, dollars
from turnwise.envs.toolworld.story import call

MEALS = ("vegetarian", "vegan", "kosher", "halal")


def total_of(found: Reservation) -> int:
    return found.price * len(found.passengers)


def cancel(draft: StoryDraft, it: str, *found: Reservation) -> WishPart:
    say = draft.words(
        f"cancel {it} and refund the price",
        f"void {it} and pay the price back",
        f"cancel {it} with a refund",
        f"have {it} cancelled and the money refunded",
        f"annul {it} and give me the money back",
        f"cancel {it}, and let me have the refund",
    )
    named = " and ".join(f"reservation {r.reservation_id} and refund {dollars(total_of(r))}" for r in found)
    writes = [call("cancel_reservation", reservation_id=r.reservation_id) for r in found]
    report = " and ".join(r.reservation_id for r in found)
    return WishPart(say, confirmed(f"cancel {named}", *writes), f"It is cancelled: reservation {report}.")


def insure(draft: StoryDraft, it: str, *found: Reservation) -> WishPart:
    say = draft.words(
        f"insure {it}",
        f"add insurance to {it}",
        f"take out insurance for {it}",
        f"have {it} insured",
        f"put insurance on {it}",
        f"get insurance for {it}",
    )
    named = " and ".join(
        f"reservation {r.reservation_id} for {dollars(INSURANCE_PRICE * len(r.passengers))} in total" for r in found
    )  # fmt: skip
    writes = [call("add_insurance", reservation_id=r.reservation_id) for r in found]
    return WishPart(say, confirmed(f"add insurance to {named}", *writes), "The insurance is added.")


def meal(draft: StoryDraft, it: str, food: str, *found: Reservation) -> WishPart:
    say = draft.words(
        f"order {food} meals for {it}",
        f"add a {food} meal for everybody to {it}",
        f"note {food} meals for all passengers of {it}",
        f"arrange {food} food for {it}",
        f"book {food} meals for {it}",
        f"request {food} meals for everyone on {it}",
    )

    def price(r: Reservation) -> int:
        return 0 if r.cabin == "business" else MEAL_PRICE * len(r.passengers)

    named = " and ".join(
        f"all passengers of {r.reservation_id} for {dollars(price(r))} in total" for r in found
    )
    writes = [call("add_meal", reservation_id=r.reservation_id, meal=food) for r in found]
    return WishPart(
        say, confirmed(f"order a {food} meal for {named}", *writes), f"The {food} meal is ordered."
    )


def bags(draft: StoryDraft, it: str, number: int, *found: Reservation) -> WishPart:
    many = f"{number} bag{'s' * (number > 1)}"
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    say = draft.words(
        f"add {many} to {it}",
        f"register {many} for {it}",
        f"check in {many} for {it}",
        f"put {many} on {it}",
        f"book {many} for {it}",
        f"include {many} in {it}",
    )
    paid = {r.reservation_id: paid_bags(user, r, number) for r in found}
    named = " and ".join(
        f"{many} for {key}, {n} of them paid, {dollars(BAG_PRICE * n)} in total" for key, n in paid.items()
    )
    writes = [call("add_bags", reservation_id=key, bags=number, paid_bags=n) for key, n in paid.items()]
    return WishPart(say, confirmed(f"register {named}", *writes), "The bags are added.")


def cabin(draft: StoryDraft, it: str, to: str, found: Reservation, flight: Flight) -> WishPart:
    if to == "business":
        say = draft.words(
            f"upgrade {it} to business", f"move {it} to business class", f"put {it} into business",
            f"change {it} to business class", f"give {it} an upgrade to business", f"raise {it} to business class",
        )  # fmt: skip
    else:
        say = draft.words(
            f"downgrade {it} to {to}", f"move {it} down to {to}", f"put {it} into {to}",
            f"change {it} to {to}", f"take {it} down to {to} class", f"switch {it} to {to}",
        )  # fmt: skip
    price = dollars((flight.prices[CABINS.index(to)] - found.price) * len(found.passengers))
    write = call("change_cabin", reservation_id=found.reservation_id, cabin=to)
    steps = confirmed(f"change reservation {found.reservation_id} to {to} for {price} in total", write)
    return WishPart(say, steps, f"The cabin is changed to {to}.")


def difference(found: Reservation, flight: Flight) -> int:
    """What a move to another flight costs all passengers together."""
    return (flight.prices[CABINS.index(found.cabin)] - found.price) * len(found.passengers)


def move(draft: StoryDraft, it: str, there: str, found: Reservation, flight: Flight) -> WishPart:
    say = draft.words(
        f"move {it} to {there}",
        f"put {it} on {there}",
        f"rebook {it} to {there}",
        f"change {it} to {there}",
        f"switch {it} to {there}",
        f"transfer {it} to {there}",
    )
    key, cost = found.reservation_id, dollars(difference(found, flight))
    write = call("change_flight", reservation_id=key, new_flight_id=flight.flight_id)
    what = f"move reservation {key} to flight {flight.flight_id}; the difference is {cost} in total"
    return WishPart(say, confirmed(what, write), f"The flight is changed to {flight.flight_id}.")


def rename(draft: StoryDraft, it: str, old: str, new: str, found: Reservation) -> WishPart:
    say = draft.words(
        f"correct the name {old} to {new} in {it}",
        f"change the passenger name {old} to {new} in {it}",
        f"write {new} instead of {old} in {it}",
        f"replace the name {old} by {new} in {it}",
        f"fix the name {old} in {it}, which should be {new}",
        f"rename the passenger {old} to {new} in {it}",
    )
    write = call("rename_passenger", reservation_id=found.reservation_id, old_name=old, new_name=new)
    what = f"change the name {old} to {new} in reservation {found.reservation_id}, free of charge"
    return WishPart(say, confirmed(what, write), "The name is changed.")


def claim(draft: StoryDraft, it: str, found: Reservation, flight: Flight) -> WishPart:
    user: AirlineCustomer = draft.db.get("users", draft.customer)
    amount = compensation(user, found, flight)
    say = draft.words(
        f"give me compensation for {it}",
        f"compensate me for {it}",
        f"issue a certificate as compensation for {it}",
        f"grant me the compensation that I am due for {it}",
        f"send me a compensation certificate for {it}",
        f"credit me with the compensation for {it}",
    )
    write = call("issue_certificate", user_id=draft.customer, amount_dollars=amount)
    steps = confirmed(f"issue a certificate of ${amount} as compensation", write)
    return WishPart(say, steps, "The certificate is issued as compensation.")


def leave(draft: StoryDraft, what: str, fact: Fact, report: str) -> WishPart:
    """Nothing is changed, and a value is told."""
    say = draft.words(
        f"change nothing and just tell me {what}",
        f"leave it as it is and let me know {what}",
        f"do nothing but tell me {what}",
        f"keep it as it is and name {what}",
        f"I only want to hear {what}, and nothing is to be changed",
        f"simply say {what} and do nothing else",
    )
    return WishPart(say, (), report, (fact,), f"What is {what}?")
