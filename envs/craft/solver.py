"""The shortest plan from any state, its length, and an imperfect scripted policy."""

from __future__ import annotations

import functools
from random import Random

from turnwise.envs.craft.actions import CraftAct, possible
from turnwise.envs.craft.state import Book, CraftState, begin, can_make


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
    fetch, make = missing(state)
    if any(amount > state.stock[thing] for thing, amount in fetch.items()):
        return float("inf")
    return len(make) + sum(-(-amount // state.book.batch) for amount in fetch.values())


def gold(state: CraftState) -> CraftAct | None:
    """The next act of a shortest plan; None where there is none."""
    fetch, make = missing(state)
    if any(amount > state.stock[thing] for thing, amount in fetch.items()):
        return None
    for thing in make:
        if can_make(state, thing):
            return CraftAct("make", thing)
    thing, amount = next(iter(fetch.items()))
    return CraftAct("get", thing, min(amount, state.book.batch))


@functools.lru_cache(maxsize=2048)
def start_distance(book: Book) -> float:
    """The turns that a shortest plan takes from the first state."""
    return distance(begin(book))


def demonstrate(state: CraftState, rng: Random) -> CraftAct | None:
    """Half of its acts are random ones, and it asks for recipes where they are not told; None: nothing can be done."""
    act, book = gold(state), state.book
    if not book.told and rng.random() < 0.25:
        return CraftAct("recipe", book.number[rng.choice([*book.number])])
    if act is None or rng.random() < 0.5:
        options = possible(state)
        return rng.choice(options) if options else None
    return act
