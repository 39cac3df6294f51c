"""Orders that come one after the other, and build on earlier ones: a long day in a workshop.

An order names a thing and its raw materials. A later one says only of which earlier orders it takes the things, so that whoever carries it out
must know how these were made. That was told once, many orders ago. Raw materials are used up whole: where they are not exactly
what a thing is made of they are spoiled, so that nobody finds a recipe by laying out all that there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from turnwise.envs.craft.render import answer, hands, recipe, store, styled
from turnwise.envs.craft.state import Book, CraftState, can_make
from turnwise.tools.core import ToolError

TASK = {
    "full": "Orders come one at a time. Carry each out; the next one is told when it is done, and none is told twice.",
    "compact": "orders .",
}
JOINED = 2  # earlier orders whose things a later one is made of


class DayOfOrders(NamedTuple):
    """The recipes of a day, and its orders: each a thing with the numbers of the orders that it builds on."""

    recipes: dict[str, dict[str, int]]
    orders: list[tuple[str, list[int]]]


def drawn_day(
    rng: Random, raw: Sequence[str], names: Sequence[str], back: int, parts: tuple[int, int], amount: int
) -> DayOfOrders:
    """One order for each name; the last ``back`` build on early ones, two each.

    The first order stands beside the task, where no context manager forgets it, so that none builds on it.
    """
    plain = len(names) - back
    recipes: dict[str, dict[str, int]] = {}
    orders: list[tuple[str, list[int]]] = []
    for name in names[:plain]:
        some = rng.sample(raw, rng.randint(*parts))
        recipes[name] = {part: rng.randint(1, amount) for part in some}
        orders.append((name, []))
    for number, name in enumerate(names[plain:]):
        earlier = [number * JOINED + 1 + n for n in range(JOINED)]
        recipes[name] = {names[other]: 1 for other in earlier}
        orders.append((name, earlier))
    return DayOfOrders(recipes, orders)


def order_line(book: Book, number: int) -> str:
    """An order as it is told."""
    thing, earlier = book.orders[number]
    name = book.names[thing]
    if earlier:
        numbers = [str(other + 1) for other in earlier]
        of = (
            f"what you made for orders {' and '.join(numbers)}"
            if book.full
            else f"orders {' , '.join(numbers)}"
        )
    else:
        of = recipe(book, thing)
    article = ("an " if name[0] in "aeiou" else "a ") if book.full else ""
    made_of = f" from {of}" if earlier or not book.asked else ""
    return styled(book, f"order {number + 1} : make {article}{name}{made_of} .")


def raws(state: CraftState) -> dict[int, int]:
    """The raw materials in the hands: their numbers and how many."""
    return {thing: n for thing, n in enumerate(state.have[: len(state.book.raw)]) if n}


def fits(state: CraftState, thing: int) -> bool:
    """Say whether the raw materials in the hands are all parts of a thing, and none too many."""
    need = dict(state.book.needs[thing])
    return all(n <= need.get(part, 0) for part, n in raws(state).items())


def make(state: CraftState, thing: int) -> CraftState:
    """Make a thing of all raw materials in the hands, or spoil them; a thing that is ordered is handed over, and the hands are empty.

    Raises:
        ToolError: there is nothing to make it of.
    """
    book, material = state.book, raws(state)
    whole = can_make(state, thing) and fits(state, thing)
    if not whole and not material:
        raise ToolError(f"parts of {book.names[thing]} are missing .")
    if whole and thing == book.orders[state.served].thing:
        return state._replace(have=(0,) * len(book.names), served=state.served + 1)
    have = [0 if part in material else n for part, n in enumerate(state.have)]
    if whole:
        for part, n in book.needs[thing]:
            have[part] -= 0 if part in material else n
        have[thing] += 1
    return state._replace(have=tuple(have))


def spoiled(before: CraftState, after: CraftState) -> bool:
    """Say whether raw materials were lost between two moments: less is in the hands, and nothing was made."""
    return (
        after.served == before.served
        and sum(after.have) < sum(before.have)
        and after.have[len(before.book.raw) :] == before.have[len(before.book.raw) :]
    )


def ask(state: CraftState, thing: int) -> CraftState:
    """Ask for the recipe of what is ordered, which is told once.

    Raises:
        ToolError: it is not told, or not again.
    """
    if thing != untold(state):
        raise ToolError("no recipe is told twice , nor before its order .")
    return state._replace(learned=state.learned | 1 << state.served)


def untold(state: CraftState) -> int | None:
    """The thing that is ordered now, where its recipe must be asked for and was not; else None."""
    if state.served >= len(state.book.orders):
        return None
    thing, earlier = state.book.orders[state.served]
    return None if earlier or is_known(state, state.served) else thing


def is_known(state: CraftState, number: int) -> bool:
    """Say whether the recipe of an order was told: with the order, or when asked for."""
    return not state.book.asked or bool(state.learned >> number & 1)


def tell(before: CraftState, after: CraftState) -> str:
    """Say what became of a thing that was fetched or made, the next order, and what there is."""
    book, lines = after.book, list[str]()
    if spoiled(before, after):
        lines.append("that is not what it is made of : the material is spoiled .")
    if after.served > before.served:
        lines += ["done .", order_line(book, after.served)]
    return "\n".join((*lines, hands(after), store(after)))


def left(state: CraftState) -> list[int]:
    """The things that are still to be made for the order of now, parts first."""
    book, (thing, earlier) = state.book, state.book.orders[state.served]
    return [part for number in earlier if not state.have[part := book.orders[number].thing]] + [thing]


def aim(state: CraftState) -> int | None:
    """The thing for which the materials in the hands save most turns, made next; None where they are of no use."""
    things = left(state)
    able = [thing for thing in things[: max(1, len(things) - 1)] if fits(state, thing)]
    return max(able, key=lambda thing: spared(state, thing), default=None)


def spared(state: CraftState, thing: int) -> int:
    """The turns of fetching that the materials in the hands save a thing that they fit."""
    batch, need = state.book.batch, dict(state.book.needs[thing])
    return sum(-(-need[part] // batch) - -(-(need[part] - n) // batch) for part, n in raws(state).items())


def needed(state: CraftState) -> tuple[str, ...]:
    """The lines that say all that the next act of a solution rests on, but for what always stands beside the task."""
    book = state.book
    if state.served >= len(book.orders):
        return ()
    order, target = book.orders[state.served], aim(state)
    from_now = [order_line(book, state.served)]
    if not order.earlier:
        asked = book.asked and is_known(state, state.served)
        return (*from_now, *([_recipe_line(book, order.thing)] if asked else []))
    for number in order.earlier:
        part = book.orders[number].thing
        if target in (part, order.thing, None):
            from_now.append(order_line(book, number))
            if book.asked and target != order.thing:
                from_now.append(_recipe_line(book, part))
    return tuple(from_now)


def _recipe_line(book: Book, thing: int) -> str:
    return styled(book, answer(book, thing))
