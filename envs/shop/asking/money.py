"""Kinds of asking that speak of prices, ratings, brands, delivery and service."""

from __future__ import annotations

import math
from collections.abc import Callable

from turnwise.envs.shop.asking.core import AskedPart, AskKind, AskSituation, Maker, ask, dollars
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.draw import Listed

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ROOM = (1.02, 1.08, 1.15)  # how much more than the price people would pay


def _cap(s: AskSituation, step: float = 1.0) -> float:
    return math.ceil(s.price * s.rng.choice(_ROOM) / step) * step


def _budget(s: AskSituation) -> AskedPart:
    cap = _cap(s)
    return AskedPart("price", {"cap": dollars(cap)}, cap=cap)


def _left_over(s: AskSituation) -> AskedPart:
    cap, rest = _cap(s, 5), 5.0 * s.rng.randint(3, 12)
    return AskedPart("price", {"all": dollars(cap + rest), "rest": dollars(rest)}, cap=cap)


def _shared(s: AskSituation) -> AskedPart:
    people = s.rng.choice((2, 3, 4, 5))
    each = math.ceil(_cap(s) / people)
    number = ("two", "three", "four", "five")[people - 2]
    return AskedPart("price", {"people": number, "each": dollars(each)}, cap=float(each * people))


def _several(s: AskSituation) -> AskedPart:
    count = s.rng.choice((2, 3, 4, 6))
    total = math.ceil(_cap(s) * count)
    number = {2: "two", 3: "three", 4: "four", 6: "six"}[count]
    return AskedPart(
        "price", {"count": number, "total": dollars(total)}, cap=math.floor(100 * total / count) / 100
    )


def _coupon(s: AskSituation) -> AskedPart:
    percent = s.rng.choice((10, 20, 25))
    cash = math.ceil(_cap(s) * (100 - percent) / 100)
    cap = math.floor(100 * cash / (100 - percent) * 100) / 100
    return AskedPart("price", {"percent": str(percent), "cash": dollars(cash)}, cap=cap)


def _foreign(s: AskSituation) -> AskedPart:
    coin, rate = s.rng.choice((("euros", 1.1), ("pounds", 1.25), ("Swiss francs", 1.12)))
    amount = math.ceil(_cap(s) / rate)
    slots = {"coins": f"{amount} {coin}", "coin": coin.removesuffix("s"), "rate": dollars(rate)}
    return AskedPart("price", slots, cap=math.floor(amount * rate * 100 + 1e-6) / 100)


def _half(s: AskSituation) -> AskedPart | None:
    other = _other(s, lambda listed: listed.article.price() / 2 >= s.price)
    if other is None:
        return None
    return AskedPart("price", {"other": other.title}, cap=math.floor(50 * other.article.price()) / 100)


def _floor(s: AskSituation) -> AskedPart:
    least = float(math.floor(s.price * s.rng.choice((0.8, 0.9, 0.97))))
    return AskedPart("price", {"least": dollars(least)}, (Condition("price", "at least", least),))


def _between(s: AskSituation) -> AskedPart:
    least, cap = float(math.floor(s.price * s.rng.choice((0.75, 0.88)))), _cap(s)
    return AskedPart(
        "price", {"least": dollars(least), "cap": dollars(cap)}, (Condition("price", "at least", least),), cap
    )


def _cheaper(s: AskSituation) -> AskedPart | None:
    other = _other(s, lambda listed: listed.article.price() > s.price)
    if other is None:
        return None
    return AskedPart("price", {"other": other.title}, cap=round(other.article.price() - 0.01, 2))


def _at_least(fact: str, steps: tuple[float, ...]) -> Maker:
    def make(s: AskSituation) -> AskedPart | None:
        reached = [step for step in steps if step <= s.number(fact)]
        if not reached:
            return None
        least = reached[-1] if len(reached) == 1 else s.rng.choice(reached[-2:])
        return AskedPart(fact, {"least": f"{least:g}"}, (Condition(fact, "at least", least),))

    return make


def _months(s: AskSituation) -> AskedPart:
    years = s.number("warranty")
    return AskedPart("warranty", {"months": f"{12 * years:g}"}, (Condition("warranty", "at least", years),))


def _within(s: AskSituation) -> AskedPart:
    days = s.number("delivery") + s.rng.choice((0, 1))
    return AskedPart(
        "delivery",
        {"days": f"{days:g} days" if days > 1 else "one day"},
        (Condition("delivery", "at most", days),),
    )


def _deadline(s: AskSituation) -> AskedPart | None:
    days = int(s.number("delivery"))
    if days > 6:
        return None
    today = s.rng.randrange(7)
    slots = {"today": _DAYS[today], "day": _DAYS[(today + days) % 7]}
    return AskedPart("delivery", slots, (Condition("delivery", "at most", float(days)),))


def _weeks(s: AskSituation) -> AskedPart | None:
    weeks = math.ceil(s.number("delivery") / 7)
    return AskedPart(
        "delivery",
        {"weeks": "a week" if weeks == 1 else "two weeks"},
        (Condition("delivery", "at most", 7.0 * weeks),),
    )


def _brand(s: AskSituation) -> AskedPart:
    return AskedPart("brand", {"brand": s.word("brand")}, (Condition("brand", "is", (s.word("brand"),)),))


def _not_brands(count: int) -> Maker:
    def make(s: AskSituation) -> AskedPart | None:
        others = sorted({str(listed.article.facts["brand"]) for listed in s.others} - {s.word("brand")})
        if len(others) < count:
            return None
        shunned = tuple(s.rng.sample(others, count))
        return AskedPart("brand", {"brands": " and ".join(shunned)}, (Condition("brand", "is not", shunned),))

    return make


def _either_brand(s: AskSituation) -> AskedPart | None:
    others = sorted({str(listed.article.facts["brand"]) for listed in s.others} - {s.word("brand")})
    if not others:
        return None
    pair = s.rng.sample((s.word("brand"), s.rng.choice(others)), 2)
    return AskedPart("brand", {"one": pair[0], "two": pair[1]}, (Condition("brand", "is", tuple(pair)),))


def _as_other(fact: str, *, same: bool) -> Maker:
    def make(s: AskSituation) -> AskedPart | None:
        mine = s.word(fact)
        other = _other(s, lambda listed: (listed.article.facts[fact] == mine) == same)
        if other is None:
            return None
        value = str(other.article.facts[fact])
        return AskedPart(
            fact, {"other": other.title}, (Condition(fact, "is" if same else "is not", (value,)),)
        )

    return make


def _origin(s: AskSituation) -> AskedPart:
    return AskedPart("origin", {"place": s.word("origin")}, (Condition("origin", "is", (s.word("origin"),)),))


def _not_origin(s: AskSituation) -> AskedPart | None:
    others = sorted({str(listed.article.facts["origin"]) for listed in s.others} - {s.word("origin")})
    if not others:
        return None
    shunned = (s.rng.choice(others),)
    return AskedPart("origin", {"place": shunned[0]}, (Condition("origin", "is not", shunned),))


def _better_rated(s: AskSituation) -> AskedPart | None:
    other = _other(s, lambda listed: listed.article.facts["rating"] < s.number("rating"))  # pyright: ignore[reportOperatorIssue]
    if other is None:
        return None
    least = round(float(other.article.facts["rating"]) + 0.1, 1)  # pyright: ignore[reportArgumentType]
    return AskedPart("rating", {"other": other.title}, (Condition("rating", "at least", least),))


def _longer_warranty(s: AskSituation) -> AskedPart | None:
    other = _other(s, lambda listed: listed.article.facts["warranty"] < s.number("warranty"))  # pyright: ignore[reportOperatorIssue]
    if other is None:
        return None
    least = float(other.article.facts["warranty"]) + 0.5  # pyright: ignore[reportArgumentType]
    return AskedPart("warranty", {"other": other.title}, (Condition("warranty", "at least", least),))


def _lowest(fact: str) -> Maker:
    return lambda s: AskedPart(fact, {}, (Condition(fact, "at most", s.number(fact)),))


def _highest(fact: str) -> Maker:
    return lambda s: AskedPart(fact, {}, (Condition(fact, "at least", s.number(fact)),))


def _cheapest(s: AskSituation) -> AskedPart:
    return AskedPart("price", {}, cap=s.price)


def _other(s: AskSituation, suits: Callable[[Listed], bool]) -> Listed | None:
    found = [listed for listed in s.others if suits(listed)]
    return s.rng.choice(found) if found else None


MONEY: tuple[AskKind, ...] = (
    ask("budget", _budget, "I can spend up to {cap}. | My limit is {cap}. | It must not cost more than {cap}. | {cap} is the most that I would pay. | Keep it to {cap} or less, please."),
    ask("budget left over", _left_over, "I have {all}, but {rest} of it must stay for the party. | Out of {all} I need {rest} for the bus and the hotel. | My voucher is worth {all}; {rest} of it is spoken for. | There are {all} in the tin, of which {rest} belong to my brother."),
    ask("budget shared", _shared, "There are {people} of us and everybody gives {each}. | We are {people} and put in {each} apiece. | The {people} of us chip in {each} each. | {people} friends contribute {each} per head, and that is all there is."),
    ask("budget for several", _several, "I shall buy {count} of them, and {total} must do for all. | {total} have to be enough for {count} of these. | We need {count} alike and have {total} altogether. | {count} pieces of it should come to {total} at most."),
    ask("budget with coupon", _coupon, "I have a coupon for {percent} percent off and {cash} in cash. | With my {percent} percent discount I can pay {cash} at the till. | They take {percent} percent off for me; after that it may be {cash} at most. | My {percent} percent staff rebate is yet to come off; I carry {cash} and no more."),
    ask("budget in other money", _foreign, "I have {coins}, and one {coin} is {rate}. | My budget is {coins} (a {coin} buys {rate}). | I get paid in another currency: {coins} at the most, at {rate} to the {coin}. | {coins} are left from my trip; the bank gives {rate} per {coin}."),
    ask("half the price", _half, "The {other} is lovely, but I want to pay half of that at most. | At no more than half the price of the {other}. | I will not pay over one half of what the {other} costs. | Two of it should not cost more than a single {other}."),
    ask("price floor", _floor, "No cheap stuff: from {least} upwards. | It should cost at least {least}, as I distrust bargains. | Nothing below {least}. | Company rules say that such things cost {least} or more."),
    ask("price range", _between, "I think of something from {least} to {cap}. | Between {least} and {cap}, please. | The price should lie from {least} up to {cap}. | Not under {least} and not over {cap}."),
    ask("cheaper than another", _cheaper, "I have seen the {other}; cheaper than that one, please. | The {other} is too dear for me, find me one for less. | It must cost less than the {other}. | I would take the {other} if its price were lower, so beat it."),
    ask("cheapest", _cheapest, "Of all that fit, give me the cheapest. | Whichever costs least. | And I want the one with the lowest price of those. | If several qualify, money decides: the least expensive.", extreme=True),
    ask("rating", _at_least("rating", (3.0, 3.5, 3.8, 4.0, 4.2, 4.5, 4.7)), "Rated {least} or better. | Buyers should give it at least {least} of 5. | Nothing below {least} stars. | Its average mark has to be {least} or above."),
    ask("number of ratings", _at_least("reviews", (20, 50, 100, 200, 500, 1000)), "At least {least} people should have rated it. | I trust only what {least} or more have rated. | Not some unknown thing with fewer than {least} ratings. | It takes {least} opinions or more to convince me."),
    ask("best rated", _highest("rating"), "Of those, the one with the best rating. | Take the highest rated that fits. | Among what is left, stars decide. | Let the average mark settle it: top one wins.", extreme=True),
    ask("most rated", _highest("reviews"), "Among these, the one that most people have rated. | Choose the one with the most ratings. | Of what fits, the most often rated. | I go with the crowd: whichever has been judged by the largest number.", extreme=True),
    ask("better rated than another", _better_rated, "It should have a better rating than the {other}. | Buyers should like it more than the {other}. | More stars than the {other} has. | The {other} disappoints me by its marks, so beat those."),
    ask("brand", _brand, "It has to be from {brand}. | My family swears by {brand}, so no other make. | Only {brand} will do. | I collect {brand} and nothing else."),
    ask("not a brand", _not_brands(1), "Anything but {brands}. | I had trouble with {brands}, so not them. | Not by {brands}, please. | {brands} never answered my letters, leave them out."),
    ask("not two brands", _not_brands(2), "Neither {brands}, I have had my fill of both. | No more {brands} for me. | Leave out {brands}. | {brands} are both banned from this house."),
    ask("one of two brands", _either_brand, "By {one} or by {two}. | {one} or {two}, nothing else. | I trust two makers: {one} and {two}. | Whether {one} or {two} made it is all the same to me, but no third."),
    ask("the brand of another", _as_other("brand", same=True), "We already have the {other}; it should be by the same maker. | The same make as the {other}. | From whoever makes the {other}. | It goes beside my {other}, so keep to that label."),
    ask("not the brand of another", _as_other("brand", same=False), "My {other} broke, so please no other one by that maker. | Not from the makers of the {other}. | Any make but that of the {other}. | Whoever built the {other} gets no more of my money."),
    ask("origin", _origin, "It should be made in {place}. | I want something that comes from {place}. | Produced in {place}, please. | My mother is from {place} and so must this be."),
    ask("not an origin", _not_origin, "Not made in {place}. | It may come from anywhere except {place}. | Nothing out of {place}. | Customs give me trouble with goods out of {place}, so spare me those."),
    ask("the origin of another", _as_other("origin", same=True), "From the same country as the {other}. | It should be made where the {other} is made. | Made in the land that the {other} comes from. | Wherever the {other} is put together, this should be too."),
    ask("delivery days", _within, "It must be here within {days}. | I cannot wait longer than {days}. | Delivered in {days} at the latest. | Beyond {days} it would come too late for me."),
    ask("delivery weekday", _deadline, "Today is {today} and I need it by {day}. | It is {today}; the birthday is on {day}. | We leave on {day}, and now it is {today}. | The calendar says {today}; {day} is when it has to lie on my table."),
    ask("delivery weeks", _weeks, "It has to come within {weeks}. | I can wait {weeks}, no longer. | In {weeks} we move, by then it must be here. | Give it {weeks}; after that the house is empty."),
    ask("fastest delivery", _lowest("delivery"), "Of those, the one that arrives first. | What comes soonest wins. | Take the quickest to be delivered among them. | Speed of the post is the tie-breaker: earliest to land here.", extreme=True),
    ask("warranty", _at_least("warranty", (1.0, 2.0, 3.0, 5.0, 10.0)), "With {least} years of warranty or more. | The maker should stand by it for at least {least} years. | Guaranteed for {least} years at a minimum. | If it fails before {least} years are up, somebody else must pay."),
    ask("warranty in months", _months, "I want {months} months of guarantee at least. | Covered for {months} months or longer. | The guarantee should run {months} months. | For {months} months I do not want to pay for repairs."),
    ask("longest warranty", _highest("warranty"), "Of those, whatever has the longest guarantee. | Choose by warranty: the longest. | The one that is guaranteed for most years. | Whichever maker vouches for it the furthest into the future.", extreme=True),
    ask("longer warranty than another", _longer_warranty, "With a longer guarantee than the {other}. | The {other} is covered too briefly for me, I want more years. | Its warranty must outlast that of the {other}. | More years of cover than you get with the {other}."),
    ask("returns", _at_least("returns", (14.0, 30.0, 60.0, 100.0)), "I want to be able to send it back for {least} days. | Returns for at least {least} days. | If she does not like it, we need {least} days to return it. | I dither: allow me {least} days of second thoughts."),
)  # fmt: skip
