"""Kinds of asking that speak of prices, ratings, brands, delivery and service."""

from __future__ import annotations

import math
from collections.abc import Callable

from turnwise.envs.shop.asking.core import AskedPart, AskKind, AskSituation, Maker, dollars
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.draw import Listed
from turnwise.envs.worlds.vocabulary import NUMBERS

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
    return AskedPart("price", {"people": NUMBERS[people], "each": dollars(each)}, cap=float(each * people))


def _several(s: AskSituation) -> AskedPart:
    count = s.rng.choice((2, 3, 4, 6))
    total = math.ceil(_cap(s) * count)
    return AskedPart(
        "price", {"count": NUMBERS[count], "total": dollars(total)}, cap=math.floor(100 * total / count) / 100
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
    AskKind("budget", _budget),
    AskKind("budget left over", _left_over),
    AskKind("budget shared", _shared),
    AskKind("budget for several", _several),
    AskKind("budget with coupon", _coupon),
    AskKind("budget in other money", _foreign),
    AskKind("half the price", _half),
    AskKind("price floor", _floor),
    AskKind("price range", _between),
    AskKind("cheaper than another", _cheaper),
    AskKind("cheapest", _cheapest, extreme=True),
    AskKind("rating", _at_least("rating", (3.0, 3.5, 3.8, 4.0, 4.2, 4.5, 4.7))),
    AskKind("number of ratings", _at_least("reviews", (20, 50, 100, 200, 500, 1000))),
    AskKind("best rated", _highest("rating"), extreme=True),
    AskKind("most rated", _highest("reviews"), extreme=True),
    AskKind("better rated than another", _better_rated),
    AskKind("brand", _brand),
    AskKind("not a brand", _not_brands(1)),
    AskKind("not two brands", _not_brands(2)),
    AskKind("one of two brands", _either_brand),
    AskKind("the brand of another", _as_other("brand", same=True)),
    AskKind("not the brand of another", _as_other("brand", same=False)),
    AskKind("origin", _origin),
    AskKind("not an origin", _not_origin),
    AskKind("the origin of another", _as_other("origin", same=True)),
    AskKind("delivery days", _within),
    AskKind("delivery weekday", _deadline),
    AskKind("delivery weeks", _weeks),
    AskKind("fastest delivery", _lowest("delivery"), extreme=True),
    AskKind("warranty", _at_least("warranty", (1.0, 2.0, 3.0, 5.0, 10.0))),
    AskKind("warranty in months", _months),
    AskKind("longest warranty", _highest("warranty"), extreme=True),
    AskKind("longer warranty than another", _longer_warranty),
    AskKind("returns", _at_least("returns", (14.0, 30.0, 60.0, 100.0))),
)
