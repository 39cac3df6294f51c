"""Rendering of observations: the task, the recipes, the inventory."""

from __future__ import annotations

from turnwise.envs.craft.state import Book, CraftState

SYSTEM = (
    "Make what you are asked to make. Each turn, write one command: get N X (a raw material, at most {batch} "
    "at once), make X (its parts are used up), recipe X, inventory."
)


def opening(state: CraftState) -> tuple[str, str]:
    """The system message, and the first observation: the task, the raw materials, the recipes if they are told."""
    book = state.book
    system = SYSTEM.format(batch=book.batch) if book.full else "craft : get , make or recipe ."
    scarce = any(stock < 99 for stock in book.stock)
    raw = [f"{name} {left}" if scarce else name for name, left in zip(book.raw, book.stock, strict=True)]
    lines = [book.task.prompt, f"{'Raw materials' if book.full else 'raw'} : {' , '.join(raw)} ."]
    if book.told:
        lines += (
            f"{book.names[thing]} : {recipe(book, thing)} ."
            for thing in sorted(book.needs, key=book.names.__getitem__)
        )
    return system, "\n".join(lines)


def hands(state: CraftState) -> str:
    """What is in the hands."""
    names = state.book.names
    held = " , ".join(f"{names[i]} {n}" for i, n in enumerate(state.have) if n) or "nothing"
    return f"{'You have' if state.book.full else 'have'} {held} ."


def recipe(book: Book, thing: int) -> str:
    """What a thing is made of: ``rod 1 , ore 2``."""
    return " , ".join(f"{book.names[part]} {amount}" for part, amount in book.needs[thing])
