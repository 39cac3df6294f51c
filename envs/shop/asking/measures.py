"""Kinds of asking that speak of quantities: limits, other units, the most and the least, and other products."""

from __future__ import annotations

import math

from turnwise.envs.shop.asking.core import AskedPart, AskKind, AskSituation
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.core import Dimension, Quantity
from turnwise.envs.shop.goods.draw import Listed
from turnwise.envs.shop.goods.tables import dimensions
from turnwise.envs.shop.goods.units import OTHER_UNITS, amount, number


def _dimension(quantity: Quantity) -> Dimension:
    return dimensions()[quantity.dimension]


def _near(s: AskSituation, quantity: Quantity, *, upwards: bool) -> float:
    """A limit that the product meant keeps, on the ladder at its value or one step beyond."""
    at = quantity.ladder.index(s.number(quantity.name)) + s.rng.choice((0, 1)) * (1 if upwards else -1)
    return quantity.ladder[min(len(quantity.ladder) - 1, max(0, at))]


def _most(s: AskSituation) -> AskedPart:
    quantity = s.quantity()
    limit = _near(s, quantity, upwards=True)
    clause = s.say(_dimension(quantity).at_most).format(amount(limit, quantity.unit))
    return _limited(quantity, clause, Condition(quantity.name, "at most", limit))


def _least(s: AskSituation) -> AskedPart:
    quantity = s.quantity()
    limit = _near(s, quantity, upwards=False)
    clause = s.say(_dimension(quantity).at_least).format(amount(limit, quantity.unit))
    return _limited(quantity, clause, Condition(quantity.name, "at least", limit))


def _limited(quantity: Quantity, clause: str, condition: Condition) -> AskedPart:
    return AskedPart(quantity.name, {"clause": clause}, (condition,))


def _converted(s: AskSituation) -> AskedPart | None:
    """A limit in another unit, of which the product meant is on the right side."""
    quantity = s.quantity()
    other = OTHER_UNITS.get(quantity.unit)
    if other is None:
        return None
    upwards = s.rng.random() < 0.5
    exact = s.number(quantity.name) * (1.02 if upwards else 0.98) / other.size / other.step
    said = (math.ceil(exact) if upwards else math.floor(exact)) * other.step
    if said <= 0:
        return None
    dimension = _dimension(quantity)
    clause = s.say(dimension.at_most if upwards else dimension.at_least)
    condition = Condition(quantity.name, "at most" if upwards else "at least", said * other.size)
    return _limited(quantity, clause.format(f"{number(said)} {other.unit}"), condition)


def _converted_most(s: AskSituation) -> AskedPart | None:
    part = _converted(s)
    return part if part is not None and part.conditions[0].test == "at most" else None


def _converted_least(s: AskSituation) -> AskedPart | None:
    part = _converted(s)
    return part if part is not None and part.conditions[0].test == "at least" else None


def _between(s: AskSituation) -> AskedPart | None:
    quantity = s.quantity()
    at = quantity.ladder.index(s.number(quantity.name))
    low, high = quantity.ladder[max(0, at - 1)], quantity.ladder[min(len(quantity.ladder) - 1, at + 1)]
    conditions = (Condition(quantity.name, "at least", low), Condition(quantity.name, "at most", high))
    slots = {"low": amount(low, quantity.unit), "high": amount(high, quantity.unit), "name": quantity.spoken}
    return AskedPart(quantity.name, slots, conditions)


def _exactly(s: AskSituation) -> AskedPart:
    quantity = s.quantity()
    value = s.number(quantity.name)
    conditions = (Condition(quantity.name, "at least", value), Condition(quantity.name, "at most", value))
    return AskedPart(
        quantity.name, {"value": amount(value, quantity.unit), "name": quantity.spoken}, conditions
    )


def _together(s: AskSituation) -> AskedPart | None:
    """Two of them within a limit."""
    found = [quantity for quantity in s.goods.quantities if quantity.dimension == "weight"]
    if not found:
        return None
    quantity = found[0]
    limit = _near(s, quantity, upwards=True)
    condition = Condition(quantity.name, "at most", limit)
    return AskedPart(quantity.name, {"total": amount(2 * limit, quantity.unit)}, (condition,))


def _reference(s: AskSituation, quantity: Quantity, sign: int) -> Listed | None:
    """Another product than which the one meant has less (-1), as much (0) or more (1)."""
    mine = s.number(quantity.name)

    def compared(listed: Listed) -> int:
        theirs = listed.article.facts[quantity.name]
        assert isinstance(theirs, float)
        return (mine > theirs) - (mine < theirs)

    found = [listed for listed in s.others if compared(listed) == sign]
    return s.rng.choice(found) if found else None


def _compared(quantity: Quantity, word: str) -> str:
    return f"{word} in {quantity.spoken}" if _dimension(quantity).named else word


def _less(s: AskSituation) -> AskedPart | None:
    quantity = s.quantity()
    other = _reference(s, quantity, -1)
    if other is None:
        return None
    theirs = other.article.facts[quantity.name]
    assert isinstance(theirs, float)
    below = max(step for step in quantity.ladder if step < theirs)
    return AskedPart(
        quantity.name,
        {"other": other.title, "less": _compared(quantity, _dimension(quantity).less)},
        (Condition(quantity.name, "at most", below),),
    )


def _more(s: AskSituation) -> AskedPart | None:
    quantity = s.quantity()
    other = _reference(s, quantity, 1)
    if other is None:
        return None
    theirs = other.article.facts[quantity.name]
    assert isinstance(theirs, float)
    above = min(step for step in quantity.ladder if step > theirs)
    return AskedPart(
        quantity.name,
        {"other": other.title, "more": _compared(quantity, _dimension(quantity).more)},
        (Condition(quantity.name, "at least", above),),
    )


def _same(s: AskSituation) -> AskedPart | None:
    quantity = s.quantity()
    other = _reference(s, quantity, 0)
    if other is None:
        return None
    value = s.number(quantity.name)
    conditions = (Condition(quantity.name, "at least", value), Condition(quantity.name, "at most", value))
    return AskedPart(quantity.name, {"other": other.title, "name": quantity.spoken}, conditions)


def _double(s: AskSituation) -> AskedPart | None:
    quantity = s.quantity()
    mine = s.number(quantity.name)
    found = [
        listed
        for listed in s.others
        if 2 * float(listed.article.facts[quantity.name]) <= mine  # pyright: ignore[reportArgumentType]
    ]
    if not found:
        return None
    other = s.rng.choice(found)
    least = 2 * float(other.article.facts[quantity.name])  # pyright: ignore[reportArgumentType]
    slots = {"other": other.title, "name": quantity.spoken}
    return AskedPart(quantity.name, slots, (Condition(quantity.name, "at least", least),))


def _lowest(s: AskSituation) -> AskedPart:
    quantity = s.quantity()
    condition = Condition(quantity.name, "at most", s.number(quantity.name))
    return AskedPart(
        quantity.name, {"least": _dimension(quantity).least, "name": quantity.spoken}, (condition,)
    )


def _highest(s: AskSituation) -> AskedPart:
    quantity = s.quantity()
    condition = Condition(quantity.name, "at least", s.number(quantity.name))
    return AskedPart(
        quantity.name, {"most": _dimension(quantity).most, "name": quantity.spoken}, (condition,)
    )


MEASURES: tuple[AskKind, ...] = (
    AskKind("at most", _most),
    AskKind("at least", _least),
    AskKind("at most in another unit", _converted_most),
    AskKind("at least in another unit", _converted_least),
    AskKind("between", _between),
    AskKind("exactly", _exactly),
    AskKind("two together", _together),
    AskKind("less than another", _less),
    AskKind("more than another", _more),
    AskKind("as much as another", _same),
    AskKind("twice another", _double),
    AskKind("the least", _lowest, extreme=True),
    AskKind("the most", _highest, extreme=True),
)
