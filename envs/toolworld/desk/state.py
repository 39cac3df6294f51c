"""The desk's tables, and worlds of them, in words of one token each."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from turnwise.envs.toolworld.database import Database
from turnwise.tools.core import ToolError

NAMES = [
    "anna", "ben", "carl", "dora", "emil", "fay", "gus", "hana", "ida", "jon", "kim", "leo", "mia", "nora",
    "otto", "pia",
]  # fmt: skip
TREES = [
    "oak", "elm", "ash", "fir", "yew", "box", "fig", "bay", "may", "gum", "plum", "pear", "lime", "palm",
    "pine", "beech", "birch", "cedar", "maple", "alder", "hazel", "holly", "rowan", "larch", "aspen",
    "linden", "willow", "walnut", "cherry", "laurel", "olive", "poplar",
]  # fmt: skip
THINGS = ["lamp", "mug", "scarf", "chair", "tent", "bowl", "rug", "desk"]
COLOURS = ["red", "blue", "green", "black", "white", "pink", "brown", "gray"]
_ORDERS = 4


class DeskOrder(NamedTuple):
    name: str
    colour: str
    thing: str
    state: str  # open, sent, cancelled
    price: int


class DeskNote(NamedTuple):
    order: str


def build(rng: Random, size: int) -> Database:
    """``size`` customers (at most eight), each with four orders."""
    orders: dict[str, DeskOrder] = {}
    size = min(size, len(TREES) // _ORDERS)
    trees = iter(rng.sample(TREES, size * _ORDERS))
    for name in rng.sample(NAMES, size):
        things, colours = rng.sample(THINGS, 2), rng.sample(COLOURS, 2)
        pairs = [(colour, thing) for colour in colours for thing in things]
        rng.shuffle(pairs)
        states = ["open", "open", "sent", rng.choice(("open", "sent"))]
        rng.shuffle(states)
        for (colour, thing), state in zip(pairs, states, strict=True):
            orders[next(trees)] = DeskOrder(name, colour, thing, state, rng.randint(10, 29))
    return Database.of({"orders": orders, "denials": {}})


def orders_of(db: Database, name: str) -> list[tuple[str, DeskOrder]]:
    """The orders of a customer, by their names."""
    return [(tree, order) for tree in db.keys("orders") if (order := db.get("orders", tree)).name == name]


def order_of(db: Database, order: str) -> DeskOrder:
    """The order of this name.

    Raises:
        ToolError: there is none.
    """
    found = db.find("orders", order)
    if found is None:
        raise ToolError("no such order .")
    return found


def line_of(tree: str, order: DeskOrder) -> str:
    """An order in three words and its name."""
    return f"{order.colour} {order.thing} {tree} {order.state}"
