"""Kinds of asking that speak of quantities: limits, other units, the most and the least, and other products."""

from __future__ import annotations

import math

from turnwise.envs.shop.asking.core import AskedPart, AskKind, AskSituation, ask
from turnwise.envs.shop.conditions import Condition
from turnwise.envs.shop.goods.core import Dimension, Quantity
from turnwise.envs.shop.goods.dimensions import DIMENSIONS, OTHER_UNITS, amount, number
from turnwise.envs.shop.goods.draw import Listed


def _dimension(quantity: Quantity) -> Dimension:
    return DIMENSIONS[quantity.dimension]


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


_CLAUSE = "It should be one that {clause}. | I need one that {clause}. | Find one that {clause}. | What I am after is one that {clause}."
MEASURES: tuple[AskKind, ...] = (
    ask("at most", _most, _CLAUSE),
    ask("at least", _least, _CLAUSE),
    ask("at most in another unit", _converted_most, "Where I come from we measure otherwise: one that {clause}. | I only know our old units: it should be one that {clause}. | In my units: one that {clause}. | My tape and scales are from overseas; by them I need one that {clause}."),
    ask("at least in another unit", _converted_least, "Converted for me, please: one that {clause}. | I do not think in metric, so: one that {clause}. | Said in American, one that {clause}. | Metric means nothing to me, so look for one that {clause}."),
    ask("between", _between, "Its {name} should lie between {low} and {high}. | For the {name}, something from {low} to {high}. | {low} to {high} would be right for the {name}. | As to {name}: not under {low}, not over {high}."),
    ask("exactly", _exactly, "Its {name} must be {value}, no more and no less. | Exactly {value} for the {name}. | {name}: {value} on the dot. | When it comes to {name}, nothing except {value} goes."),
    ask("two together", _together, "We take two, and both together must not weigh more than {total}. | A pair of them has to stay within {total} on the scales. | I carry two of these, {total} in all at most. | On the parcel scales a couple of them may show {total} and not a bit beyond."),
    ask("less than another", _less, "It must be {less} than the {other}. | I know the {other}; I want something {less}. | The {other} is not quite it: make it {less}. | Take the {other} as the mark and go {less}."),
    ask("more than another", _more, "It must be {more} than the {other}. | Something {more} than the {other}. | Next to the {other} it should be {more}. | Compared with the {other} I want it {more}."),
    ask("as much as another", _same, "The same {name} as the {other}. | Its {name} should equal that of the {other}. | In {name} it has to match the {other}. | It replaces my {other}, so keep the {name} unchanged."),
    ask("twice another", _double, "At least twice the {name} of the {other}. | Double the {name} of the {other}, or more. | The {other} has not half the {name} that I need. | Take the {name} of the {other}, times two: that is my minimum."),
    ask("the least", _lowest, "Of those that fit, the {least} one, by its {name}. | By {name}, I want the {least} that qualifies. | Let the {name} decide: {least} wins. | With the rest settled, pick the {least} in terms of {name}.", extreme=True),
    ask("the most", _highest, "Of those that fit, the {most} one, by its {name}. | Going by {name}, the {most} of them. | The {name} settles it: the {most}. | Once all that holds, hand me the {most} as regards {name}.", extreme=True),
)  # fmt: skip
