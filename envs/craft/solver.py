"""The shortest plan from any state, its length, and an imperfect scripted policy."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random
from typing import NamedTuple

from turnwise.envs.craft.actions import CraftAct, possible
from turnwise.envs.craft.orders import aim, is_known, left, raws, spared
from turnwise.envs.craft.state import Book, CraftState, begin, can_make

_ASTRAY, _ASTRAY_OF_A_DAY = 0.5, 0.1
"""Shares of random acts of the imperfect policy."""


def missing(state: CraftState) -> tuple[dict[int, int], list[int]]:
    """Return what a shortest plan still fetches (material → amount) and makes, parts first.

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
    if state.book.orders:
        return _distance_of_day(state)
    fetch, make = missing(state)
    if any(amount > state.stock[thing] for thing, amount in fetch.items()):
        return float("inf")
    return len(make) + sum(-(-amount // state.book.batch) for amount in fetch.values())


def gold(state: CraftState) -> CraftAct | None:
    """The next act of a shortest plan; None where there is none."""
    if state.book.orders:
        return _next_of_day(state)
    fetch, make = missing(state)
    if any(amount > state.stock[thing] for thing, amount in fetch.items()):
        return None
    for thing in make:
        if can_make(state, thing):
            return CraftAct("make", thing)
    thing, amount = next(iter(fetch.items()))
    return CraftAct("get", thing, min(amount, state.book.batch))


class _Plan(NamedTuple):
    """The turns of some part of a day, and the raw materials that it fetches."""

    turns: int
    fetch: Counter[int]

    def __add__(self, other: _Plan) -> _Plan:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _Plan(self.turns + other.turns, self.fetch + other.fetch)


def _making(book: Book, things: Iterable[int]) -> _Plan:
    """Fetch and make things one after the other."""
    plan = _Plan(0, Counter())
    for thing in things:
        fetch = Counter({part: n for part, n in book.needs[thing] if part < len(book.raw)})
        plan += _Plan(1 + sum(-(-n // book.batch) for n in fetch.values()), fetch)
    return plan


@functools.lru_cache(maxsize=8192)
def _from_order(book: Book, number: int) -> _Plan:
    """The orders from a certain one on."""
    if number >= len(book.orders):
        return _Plan(0, Counter())
    thing, earlier = book.orders[number]
    asks = int(book.asked and not earlier)
    things = (*(book.orders[other].thing for other in earlier), thing)
    return _Plan(asks, Counter()) + _making(book, things) + _from_order(book, number + 1)


def _plan_of_day(state: CraftState) -> _Plan:
    book = state.book
    if state.served >= len(book.orders):
        return _Plan(0, Counter())
    asks = int(not book.orders[state.served].earlier and not is_known(state, state.served))
    rest = _Plan(asks, Counter()) + _making(book, left(state)) + _from_order(book, state.served + 1)
    if (thing := aim(state)) is None:
        return _Plan(rest.turns + 1, rest.fetch)  # a turn that spoils what is of no use
    return _Plan(rest.turns - spared(state, thing), rest.fetch - Counter(raws(state)))


def fetched(state: CraftState) -> Mapping[int, int]:
    """Return what a day's shortest plan still fetches: material → amount."""
    return _plan_of_day(state).fetch


def _distance_of_day(state: CraftState) -> float:
    plan = _plan_of_day(state)
    return float("inf") if _wanting(state, plan.fetch) else plan.turns


def _wanting(state: CraftState, fetch: Counter[int]) -> bool:
    return any(n > state.stock[part] for part, n in fetch.items())


def _next_of_day(state: CraftState) -> CraftAct | None:
    book = state.book
    if state.served >= len(book.orders) or _wanting(state, _plan_of_day(state).fetch):
        return None
    thing, earlier = book.orders[state.served]
    if not earlier and not is_known(state, state.served):
        return CraftAct("recipe", thing)
    target = aim(state)
    if target is None:
        return CraftAct("make", thing)  # which spoils what is of no use
    for part, n in book.needs[target]:
        if part < len(book.raw) and state.have[part] < n:
            return CraftAct("get", part, min(n - state.have[part], book.batch))
    return CraftAct("make", target)


@functools.lru_cache(maxsize=2048)
def start_distance(book: Book) -> float:
    """The turns that a shortest plan takes from the first state."""
    return distance(begin(book))


def demonstrate(state: CraftState, rng: Random) -> CraftAct | None:
    """Half of its acts are random ones, a tenth in a day of orders; it asks for recipes that are not told; None: nothing can be done."""
    act, book = gold(state), state.book
    if not book.told and not book.orders and rng.random() < 0.25:
        return CraftAct("recipe", book.number[rng.choice([*book.number])])
    if act is None or rng.random() < (_ASTRAY_OF_A_DAY if book.orders else _ASTRAY):
        options = possible(state)
        return rng.choice(options) if options else None
    return act
