"""Recipes and states. Things are numbered: first the raw materials, then what is made, by level or by orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turnwise.envs.craft.vocabulary import plurals
from turnwise.errors import EnvError
from turnwise.tasks.core import Task


class CraftOrder(NamedTuple):
    """A thing that is asked for, and the earlier orders whose things it is made of; none: raw materials."""

    thing: int
    earlier: Sequence[int]


class Book:
    """The part of a task that stays the same during an episode."""

    def __init__(self, task: Task) -> None:
        options = task.options
        try:
            self.raw: Sequence[str] = options["raw"]
            recipes: Mapping[str, Mapping[str, int]] = dict(options["recipes"])
            self.names: Sequence[str] = (*self.raw, *recipes)
            self.number = {name: number for number, name in enumerate(self.names)}
            self._called = {
                called: number for name, number in self.number.items() for called in plurals(name)
            } | self.number
            self.goal = self.number[options["goal"]]
            self.needs: Mapping[int, Sequence[tuple[int, int]]] = {
                self.number[name]: [(self.number[part], n) for part, n in parts.items()]
                for name, parts in recipes.items()
            }
            self.stock: tuple[int, ...] = tuple(options["stock"])
            self.batch, self.slip = int(options["batch"]), float(options["slip"])
            self.told, self.full = bool(options["told"]), options["text"] == "full"
            self.orders = [
                CraftOrder(self.number[name], tuple(earlier)) for name, earlier in options.get("orders", ())
            ]
            self.asked = bool(options.get("asked"))  # recipes of orders are told when asked for
        except (KeyError, TypeError, ValueError) as error:
            raise EnvError(f"This is no craft task: {error!r}.", "Take tasks from a suite.") from None
        self.task = task

    def number_of(self, word: str) -> int | None:
        """The thing that a word calls, one or several of it."""
        return self._called.get(word)

    def __repr__(self) -> str:
        return f"Book({self.task.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Book) and other.task.id == self.task.id

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __reduce__(self) -> tuple[type[Book], tuple[Task]]:
        return Book, (self.task,)


class CraftState(NamedTuple):
    """A moment.

    Attributes:
        book: the task's own.
        have: how many of every thing are in the hands.
        stock: what is left of each raw material.
        served: orders that are carried out.
        learned: a bit for each order whose recipe was asked for.
    """

    book: Book
    have: tuple[int, ...]
    stock: tuple[int, ...]
    served: int = 0
    learned: int = 0


def begin(book: Book) -> CraftState:
    """The first moment: empty hands."""
    return CraftState(book, (0,) * len(book.names), book.stock)


def solved(state: CraftState) -> bool:
    """Say whether the goal is in the hands, or all orders are carried out."""
    if state.book.orders:
        return state.served == len(state.book.orders)
    return state.have[state.book.goal] > 0


def can_make(state: CraftState, thing: int) -> bool:
    """Say whether all parts of a thing are there."""
    return all(state.have[part] >= amount for part, amount in state.book.needs[thing])
