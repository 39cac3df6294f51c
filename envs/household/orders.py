"""Orders that come one after the other, and refer to earlier ones: a long day in a house.

An order names a thing and a place. A later one says only of which earlier order it takes back what was moved, so that whoever
carries it out must know what the earlier one said. That was shown once, ``delay`` orders ago.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.household.state import House, HouseOrder, HouseState
from turnwise.envs.household.vocabulary import HOLLOW

TASK = {
    "full": "Orders come one at a time. Carry each out; the next one is told when it is done, and none is told twice.",
    "compact": "orders .",
}


class KeptOrders(NamedTuple):
    """What is done at once after an act: how many orders are carried out, and what is said of it."""

    state: HouseState
    text: str


def drawn_orders(
    rng: Random,
    homes: Sequence[str],
    does: Sequence[str],
    objects: Sequence[Sequence[object]],
    number: int,
    back: int,
) -> list[list[int]] | None:
    """Orders ``[object, place, origin, back]``; the last ``back`` take back what early ones moved. None where too little fits.

    The first order stands beside the task, where no context manager forgets it, so that none refers to it.

    Args:
        rng: of the task.
        homes: the words of the receptacles.
        does: what each of them does.
        objects: each with its receptacle.
        number: of orders.
        back: how many of them take something back.
    """
    plain = number - back
    chosen = rng.sample(range(len(objects)), plain) if plain <= len(objects) else []
    if len(chosen) < plain or plain <= back:
        return None
    orders: list[list[int]] = []
    for thing in chosen:
        origin = int(str(objects[thing][1]))
        free = [
            p for p, word in enumerate(homes) if does[p] in ("", "use", "clean") and word != homes[origin]
        ]
        if not free:
            return None
        orders.append([thing, rng.choice(free), origin, -1])
    for earlier in range(1, back + 1):
        thing, place, origin, _ = orders[earlier]
        orders.append([thing, origin, place, earlier])
    return orders


def keep(state: HouseState) -> KeptOrders:
    """Count the orders that are carried out, and tell the next one."""
    orders, said = state.house.orders, list[str]()
    while state.served < len(orders) and state.at[orders[state.served].object] == orders[state.served].place:
        state = state._replace(served=state.served + 1)
        said.append("Done." if state.house.full else "done .")
        if state.served < len(orders):
            said.append(order_text(state.house, state.served))
    return KeptOrders(state, "\n".join(said))


def order_text(house: House, number: int) -> str:
    """An order as it is told."""
    order = house.orders[number]
    if order.back >= 0:
        back = order.back + 1
        if not house.full:
            return f"order {number + 1} : back order {back} ."
        return f"Order {number + 1}: take back to where it was what you moved for order {back}."
    thing, place, origin = house.objects[order.object], house.places[order.place], house.places[order.origin]
    if not house.full:
        lies = "" if house.hidden else f" from {origin}"
        return f"order {number + 1} : {thing}{lies} to {place} ."
    lies = "" if house.hidden else f", which is {_at(origin)},"
    return f"Order {number + 1}: put {thing}{lies} {_at(place)}."


def _at(place: str) -> str:
    return f"{'in' if place.partition(' ')[0] in HOLLOW else 'on'} {place}"


def needed(state: HouseState) -> tuple[str, ...]:
    """The lines that say all that the next act of a solution needs to know, but for what always stands beside the task."""
    house = state.house
    if state.served >= len(house.orders):
        return ()
    order: HouseOrder = house.orders[state.served]
    lines = [order_text(house, number) for number in (order.back, state.served) if number >= 0]
    if house.hidden and order.back < 0:  # it must have been seen
        where = house.places[state.at[order.object]] if state.at[order.object] < house.receptacles else ""
        lines += [f"the {where} you see" if house.full else f"{where} :"] if where else []
    return tuple(lines)
