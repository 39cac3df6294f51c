"""Actions: how commands are read and written, and what each does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.craft import orders
from turnwise.envs.craft.render import recipe
from turnwise.envs.craft.state import Book, CraftState, can_make
from turnwise.envs.craft.vocabulary import AMOUNTS, IDIOMS, NAMES, NO_AMOUNT, TAILS, VERBS
from turnwise.tools.core import ToolError

NOTHING = -1
_COUNTED = frozenset(("many", "much", "have", "inventory"))
_RECIPE = frozenset(("recipe", "recipes"))


class CraftAct(NamedTuple):
    """A verb (``get``, ``make``, ``recipe``, ``inventory``), the number of a thing if it is about one, how many."""

    verb: str
    thing: int = NOTHING
    amount: int = 1


def read(book: Book, words: Sequence[str]) -> CraftAct:
    """Read a command.

    Raises:
        ToolError: its verb is unknown, or the thing that it needs.
    """
    verb = VERBS.get(words[0])
    if verb is None:
        raise ToolError(f"unknown verb {words[0][:20]} : say get , make , recipe or inventory .")
    if verb in ("get", "make") and not IDIOMS.isdisjoint(words[1:3]):
        raise ToolError(f"{verb} what ?")
    named = [(place, book.number_of(word)) for place, word in enumerate(words) if place]
    place, thing = next(((place, number) for place, number in named if number is not None), (0, None))
    if words[0] in ("how", "what") and not _COUNTED.isdisjoint(words):
        verb = "inventory"
    elif (thing is not None and words[0] == "what") or not _RECIPE.isdisjoint(words):
        verb = "recipe"
    if verb == "inventory":
        return CraftAct(verb)
    first = next((word for word in words[1:] if word in NAMES or word in TAILS), "")
    if first in NAMES and book.number_of(first) is None:  # "make pin from 2 cork", where there are no pins
        raise ToolError(f"there is nothing called {first} here .")
    if thing is None:
        raise ToolError(f"{verb} what ? name one thing ." if verb == "recipe" else f"{verb} what ?")
    if verb == "get" and not NO_AMOUNT.isdisjoint(words):
        raise ToolError(f"say how many , at most {book.batch} at once .")
    end = next(
        (n for n in range(place + 1, len(words)) if words[n] in TAILS or words[n] in VERBS), len(words)
    )
    said = [int(word) if word.isdecimal() else AMOUNTS.get(word) for word in words[1:end] if len(word) < 7]
    return CraftAct(verb, thing, next((amount for amount in said if amount is not None), 1))


def do(state: CraftState, act: CraftAct) -> CraftState:
    """Carry out an act that gets or makes something.

    Raises:
        ToolError: material or parts are missing.
    """
    return _get(state, act) if act.verb == "get" else _make(state, act)


def _get(state: CraftState, act: CraftAct) -> CraftState:
    book, thing, amount = state.book, act.thing, act.amount
    if thing in book.needs:
        raise ToolError(f"{book.names[thing]} must be made .")
    if not 1 <= amount <= book.batch:
        raise ToolError(f"get at most {book.batch} at once ." if amount else "get at least 1 .")
    if state.stock[thing] < amount:
        raise ToolError(f"there is only {book.names[thing]} {state.stock[thing]} .")
    have, stock = list(state.have), list(state.stock)
    have[thing] += amount
    stock[thing] -= amount
    return state._replace(have=tuple(have), stock=tuple(stock))


def _make(state: CraftState, act: CraftAct) -> CraftState:
    book, thing = state.book, act.thing
    if thing not in book.needs:
        raise ToolError(f"{book.names[thing]} is raw : get it .")
    if act.amount != 1:
        raise ToolError("make one thing a turn .")
    if book.orders:
        return orders.make(state, thing)
    if not can_make(state, thing):
        need = f" , it needs {recipe(book, thing)}" if book.told else ""
        raise ToolError(f"parts of {book.names[thing]} are missing{need} .")
    have = list(state.have)
    for part, amount in book.needs[thing]:
        have[part] -= amount
    have[thing] += 1
    return state._replace(have=tuple(have))


def possible(state: CraftState) -> list[CraftAct]:
    """Every act that changes something, materials by the piece: a question for the recipe of an order too, which is answered once."""
    gets = [CraftAct("get", thing) for thing, left in enumerate(state.stock) if left]
    spoils = bool(state.book.orders and orders.raws(state))
    makes = [CraftAct("make", thing) for thing in state.book.needs if spoils or can_make(state, thing)]
    asked = orders.untold(state)
    return gets + makes + ([CraftAct("recipe", asked)] if asked is not None else [])


def write(book: Book, act: CraftAct) -> str:
    """An act as a command."""
    if act.thing == NOTHING:
        return act.verb if book.full else f"{act.verb} ."
    if act.verb == "get" and (book.batch > 1 or not book.full):
        return (
            f"get {act.amount} {book.names[act.thing]}"
            if book.full
            else f"get {book.names[act.thing]} {act.amount}"
        )
    return f"{act.verb} {book.names[act.thing]}" + ("" if book.full else " .")
