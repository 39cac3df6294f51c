"""Recipes and states. Things are numbered: first the raw materials, then what is made, by level."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.errors import EnvError
from turnwise.tasks.core import Task
from turnwise.tools.core import ToolError

_RAW = "ore wood sand clay wool reed stone bone resin salt hide flint"
_MADE = (
    "rod plate wire gear blade rope cloth brick glass lens frame hinge lamp hammer wheel cart pump valve coil "
    "bolt nail beam panel crate barrel bucket ladder anchor compass clock kiln forge loom plough saddle quiver "
    "helm shield banner bell"
)
RAW: tuple[str, ...] = tuple(_RAW.split())
MADE: tuple[str, ...] = tuple(_MADE.split())


class Book:
    """What stays the same during an episode."""

    def __init__(self, task: Task) -> None:
        options = task.options
        try:
            self.raw: Sequence[str] = options["raw"]
            recipes: Mapping[str, Mapping[str, int]] = dict(options["recipes"])
            self.names: Sequence[str] = (*self.raw, *recipes)
            self.number = {name: number for number, name in enumerate(self.names)}
            self.goal = self.number[options["goal"]]
            self.needs: Mapping[int, Sequence[tuple[int, int]]] = {
                self.number[name]: [(self.number[part], n) for part, n in parts.items()]
                for name, parts in recipes.items()
            }
            self.stock: tuple[int, ...] = tuple(options["stock"])
            self.batch, self.slip = int(options["batch"]), float(options["slip"])
            self.told, self.full = bool(options["told"]), options["text"] == "full"
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"This is no craft task: {error!r}.", "Take tasks from a suite.") from None
        self.task = task

    def __repr__(self) -> str:
        return f"Book({self.task.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Book) and other.task.id == self.task.id

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __reduce__(self) -> tuple[type[Book], tuple[Task]]:
        return Book, (self.task,)

    @functools.cached_property
    def start_distance(self) -> float:
        """The turns that a shortest plan takes from the first state."""
        return distance(begin(self))


class CraftState(NamedTuple):
    """A moment. ``have`` counts every thing, ``stock`` what is left of each raw material."""

    book: Book
    have: tuple[int, ...]
    stock: tuple[int, ...]


class Act(NamedTuple):
    """``get`` or ``make``, of what, how many."""

    verb: str
    thing: int
    amount: int = 1


def begin(book: Book) -> CraftState:
    """The first moment: empty hands."""
    return CraftState(book, (0,) * len(book.names), book.stock)


def solved(state: CraftState) -> bool:
    """Whether the goal is in the hands."""
    return state.have[state.book.goal] > 0


def do(state: CraftState, act: Act) -> CraftState:
    """Carry an act out.

    Raises:
        ToolError: material or parts are missing.
    """
    return _get(state, act) if act.verb == "get" else _make(state, act)


def _get(state: CraftState, act: Act) -> CraftState:
    book, thing, amount = state.book, act.thing, act.amount
    if thing in book.needs:
        raise ToolError(f"{book.names[thing]} must be made .")
    if not 1 <= amount <= book.batch:
        raise ToolError(f"get at most {book.batch} at once .")
    if state.stock[thing] < amount:
        raise ToolError(f"there is only {book.names[thing]} {state.stock[thing]} .")
    have, stock = list(state.have), list(state.stock)
    have[thing] += amount
    stock[thing] -= amount
    return CraftState(book, tuple(have), tuple(stock))


def _make(state: CraftState, act: Act) -> CraftState:
    book, thing = state.book, act.thing
    if thing not in book.needs:
        raise ToolError(f"{book.names[thing]} is raw : get it .")
    if act.amount != 1:
        raise ToolError("make one thing a turn .")
    if not can_make(state, thing):
        need = f" , it needs {recipe(book, thing)}" if book.told else ""
        raise ToolError(f"parts of {book.names[thing]} are missing{need} .")
    have = list(state.have)
    for part, amount in book.needs[thing]:
        have[part] -= amount
    have[thing] += 1
    return CraftState(book, tuple(have), state.stock)


def can_make(state: CraftState, thing: int) -> bool:
    """Whether all parts are there."""
    return all(state.have[part] >= amount for part, amount in state.book.needs[thing])


def recipe(book: Book, thing: int) -> str:
    """What a thing is made of: ``rod 1 , ore 2``."""
    return " , ".join(f"{book.names[part]} {amount}" for part, amount in book.needs[thing])


def possible(state: CraftState) -> list[Act]:
    """Every act that can be carried out, materials by the piece."""
    gets = [Act("get", thing) for thing, left in enumerate(state.stock) if left]
    return gets + [Act("make", thing) for thing in state.book.needs if can_make(state, thing)]


def missing(state: CraftState) -> tuple[dict[int, int], list[int]]:
    """What a shortest plan still fetches (material → amount) and makes (parts before what needs them).

    A thing in the hands saves all that is below it, so what is there is always used first.
    """
    spare = list(state.have)
    fetch: dict[int, int] = {}
    make: list[int] = []
    _require(state.book, state.book.goal, 1, spare, fetch, make)
    return fetch, make


def _require(
    book: Book, thing: int, amount: int, spare: list[int], fetch: dict[int, int], make: list[int]
) -> None:
    there = min(amount, spare[thing])
    spare[thing] -= there
    lacking = amount - there
    if not lacking:
        return
    if thing not in book.needs:
        fetch[thing] = fetch.get(thing, 0) + lacking
        return
    for _ in range(lacking):
        for part, n in book.needs[thing]:
            _require(book, part, n, spare, fetch, make)
        make.append(thing)


def distance(state: CraftState) -> float:
    """The turns of a shortest plan, infinite where material is wanting."""
    fetch, make = missing(state)
    if any(amount > state.stock[thing] for thing, amount in fetch.items()):
        return float("inf")
    return len(make) + sum(-(-amount // state.book.batch) for amount in fetch.values())


def gold(state: CraftState) -> Act | None:
    """The next act of a shortest plan; None where there is none."""
    fetch, make = missing(state)
    if any(amount > state.stock[thing] for thing, amount in fetch.items()):
        return None
    for thing in make:
        if can_make(state, thing):
            return Act("make", thing)
    thing, amount = next(iter(fetch.items()))
    return Act("get", thing, min(amount, state.book.batch))
