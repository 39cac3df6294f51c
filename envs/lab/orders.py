"""Orders that come one after the other, and refer to what was found for earlier ones: a long day in a laboratory.

An order names a cube and an instrument. A later one asks which of the cubes of some earlier orders is the heaviest, or has the longest side, by the
numbers of these orders alone: both which cubes they were and what the instruments said was shown once, long before.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.lab.plan import LessonItem, LessonPlan
from turnwise.envs.lab.render import styled
from turnwise.envs.lab.state import Laboratory, LabState
from turnwise.envs.lab.vocabulary import INDOORS

TASK = "Orders come one at a time; the next one is told when it is done, and none is told twice."
_COMPARED = 3  # earlier orders that a later one is about


class _Instrument(NamedTuple):
    """An instrument, how its use is ordered, what it says, and what is asked about it later."""

    name: str
    order: str
    says: str
    values: range
    asked: str


_INSTRUMENTS = (
    _Instrument(
        "scale", "Test {{{0}}} with {{{1}}}.", "the scale shows {} grams .", range(40, 2000),
        "the heaviest of the cubes",
    ),
    _Instrument(
        "ruler", "Measure a side of {{{0}}} with {{{1}}}.", "each side is {} centimetres long .", range(3, 200),
        "the cube with the longest side",
    ),
)  # fmt: skip


def ordered(rng: Random, number: int, back: int) -> LessonPlan:
    """Cubes all over the rooms, ``number`` orders to test them, of which the last ``back`` ask about earlier ones."""
    tested = number - back
    items = [LessonItem("cube", rng.choice(INDOORS)) for _ in range(tested)]
    items += [LessonItem(one.name) for one in _INSTRUMENTS]
    used = [n % len(_INSTRUMENTS) for n in range(tested)]
    rng.shuffle(used)
    values = [rng.sample(one.values, tested) for one in _INSTRUMENTS]
    goals, orders, readings = list[tuple[object, ...]](), list[str](), list[tuple[str, int, str]]()
    cubes = rng.sample(range(tested), tested)  # so that the number of an order is not that of its cube
    for order, which in enumerate(used):
        one = _INSTRUMENTS[which]
        orders.append(one.order.format(cubes[order], tested + which))
        readings.append((one.name, cubes[order], one.says.format(values[which][order])))
        goals.append(("used", order))
    for place in range(back):
        which = place % len(_INSTRUMENTS)
        known = [order for order, other in enumerate(used) if other == which]
        early = known[place // len(_INSTRUMENTS)]
        compared = sorted([early, *rng.sample([order for order in known if order != early], _COMPARED - 1)])
        best = max(compared, key=values[which].__getitem__)
        *some, last = (order + 1 for order in compared)
        listed = f"{', '.join(map(str, some))} and {last}"
        orders.append(f"Focus on {_INSTRUMENTS[which].asked} of orders {listed}.")
        goals.append(("focus", cubes[best]))
    extra = {"orders": orders, "readings": readings}
    return LessonPlan(items, goals, f"{TASK} {order_line(0, orders[0])}", (), extra)


def order_line(number: int, order: str) -> str:
    """An order as it is told."""
    return f"Order {number + 1}: {order}"


def told(before: LabState, after: LabState) -> list[str]:
    """The orders that are told when others were carried out."""
    orders = after.lab.orders
    return [order_line(n, orders[n]) for n in range(before.done + 1, min(after.done + 1, len(orders)))]


def needed(state: LabState) -> tuple[str, ...]:
    """The lines that say all that the next act of a solution rests on, but for what always stands beside the task."""
    lab, now = state.lab, state.done
    if now >= len(lab.orders):
        return ()
    lines = [order_line(now, lab.orders[now])] if now else []
    for earlier in _referred(lab, now):
        lines.append(order_line(earlier, lab.orders[earlier]) if earlier else "")
        lines.append(styled(lab, lab.readings[earlier].says))
    return tuple(filter(None, lines))


def _referred(lab: Laboratory, number: int) -> Sequence[int]:
    """The earlier orders that an order names."""
    _, _, listed = lab.orders[number].partition(" of orders ")
    return [int(word) - 1 for word in listed.replace(",", " ").replace(".", " ").split() if word.isdecimal()]
