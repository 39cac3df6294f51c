"""Rendering of observations: the task, the recipes, the inventory; in sentences, or with a space behind every word."""

from __future__ import annotations

import re
from collections.abc import Iterable

from turnwise.envs.craft.state import Book, CraftState

SYSTEM = (
    "Make what you are asked to make. Each turn, write one command: get N X (a raw material, at most {batch} "
    "at once), make X (its parts are used up), recipe X, inventory."
)
ORDERED = (
    "Carry out the orders. Each turn, write one command: get N X (a raw material, at most {batch} at once), make X "
    "(of all the raw materials in your hands; if they are not exactly what X is made of, they are spoiled){recipe}, inventory."
)
_SPACED = re.compile(r" ([.,:])")


def opening(state: CraftState) -> tuple[str, str]:
    """The system message, and the first observation: the task, the raw materials, the recipes if they are told."""
    book = state.book
    system = "craft : get , make or recipe ."
    if book.full and book.orders:
        system = ORDERED.format(
            batch=book.batch, recipe=", recipe X (of what is ordered, told once)" * book.asked
        )
    elif book.full:
        system = SYSTEM.format(batch=book.batch)
    if book.orders:
        return system, f"{book.task.prompt}\n{styled(book, store(state))}"
    scarce = any(stock < 99 for stock in book.stock)
    raw = _counted(book, zip(book.raw, book.stock, strict=True)) if scarce else " , ".join(book.raw)
    lines = [book.task.prompt, styled(book, f"{'raw materials' if book.full else 'raw'} : {raw} .")]
    if book.told:
        lines += (
            styled(book, f"{book.names[thing]} : {recipe(book, thing)} .")
            for thing in sorted(book.needs, key=book.names.__getitem__)
        )
    return system, "\n".join(lines)


def hands(state: CraftState) -> str:
    """List the things in the hands."""
    book = state.book
    held = _counted(book, ((book.names[i], n) for i, n in enumerate(state.have) if n)) or "nothing"
    return f"{'you have' if book.full else 'have'} {held} ."


def store(state: CraftState) -> str:
    """List the raw materials that are left."""
    book = state.book
    left = _counted(book, zip(book.raw, state.stock, strict=True))
    return f"the store has {left} ." if book.full else f"store : {left} ."


def recipe(book: Book, thing: int) -> str:
    """Write the parts of a thing: ``rod 1 , ore 2``; in sentences ``1 rod , 2 ore``."""
    return _counted(book, ((book.names[part], amount) for part, amount in book.needs[thing]))


def answer(book: Book, thing: int) -> str:
    """Write the answer to a question about a recipe."""
    name = book.names[thing]
    if thing not in book.needs:
        return f"{name} is raw ." if book.full else f"{name} : raw ."
    return (
        f"for {name} you need {recipe(book, thing)} ." if book.full else f"{name} : {recipe(book, thing)} ."
    )


def _counted(book: Book, things: Iterable[tuple[str, int]]) -> str:
    return " , ".join(f"{n} {name}" if book.full else f"{name} {n}" for name, n in things)


def styled(book: Book, text: str) -> str:
    """Lines in the style of the task: full sentences have no space before their signs."""
    if not book.full:
        return text
    return "\n".join(_SPACED.sub(r"\1", line[0].upper() + line[1:]) for line in text.split("\n"))
