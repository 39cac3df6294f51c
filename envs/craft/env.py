"""``turnwise/Craft-v0``: make things of things."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.core import End
from turnwise.envs.craft.book import (
    Act,
    Book,
    CraftState,
    begin,
    distance,
    do,
    gold,
    possible,
    recipe,
    solved,
)
from turnwise.envs.craft.tasks import CraftKnobs, draw_task
from turnwise.envs.worlds.commands import Answer, CommandEnv, Kept
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_book = Kept(Book)
_VERBS = {
    **dict.fromkeys(("get", "fetch", "take", "gather", "collect", "mine", "grab"), "get"),
    **dict.fromkeys(("make", "craft", "build", "create", "assemble"), "make"),
    **dict.fromkeys(("recipe", "read", "recall", "ask", "how"), "recipe"),
    **dict.fromkeys(("inventory", "look", "inv", "have", "wait"), "inventory"),
}
_SYSTEM = (
    "Make what you are asked to make. Each turn, write one command: get N X (a raw material, at most {batch} "
    "at once), make X (its parts are used up), recipe X, inventory."
)


class CraftEnv(CommandEnv[CraftState]):
    """Fetch raw materials and make things of them, up a recipe tree."""

    turn_limit = 30
    floor: ClassVar[float] = 0.15
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        "depth_4": {"depth": 4, "width": 3, "turn_limit": 200}
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(CraftKnobs, knobs, "craft"))

    def begin(self, task: Task) -> CraftState:
        return begin(_book(task))

    def opening(self, state: CraftState) -> tuple[str, str]:
        book = state.book
        system = _SYSTEM.format(batch=book.batch) if book.full else "craft : get , make or recipe ."
        scarce = any(stock < 99 for stock in book.stock)
        raw = [f"{name} {left}" if scarce else name for name, left in zip(book.raw, book.stock, strict=True)]
        lines = [book.task.prompt, f"{'Raw materials' if book.full else 'raw'} : {' , '.join(raw)} ."]
        if book.told:
            lines += (
                f"{book.names[thing]} : {recipe(book, thing)} ."
                for thing in sorted(book.needs, key=book.names.__getitem__)
            )
        return system, "\n".join(lines)

    def obey(self, state: CraftState, words: Sequence[str]) -> Answer[CraftState]:
        book = state.book
        verb = _VERBS.get(words[0])
        if verb is None:
            raise ToolError(f"unknown verb {words[0][:20]} : say get , make , recipe or inventory .")
        if verb == "inventory":
            return Answer(state, _hands(state))
        thing = next((book.number[word] for word in words[1:] if word in book.number), None)
        if thing is None:
            raise ToolError(f"{verb} what ?")
        if verb == "recipe":
            parts = recipe(book, thing) if thing in book.needs else "raw"
            return Answer(state, f"{book.names[thing]} : {parts} .")
        if book.slip and self.rng("slip").random() < book.slip:
            return Answer(state, "it slips and nothing happens .")
        amount = next((int(word) for word in words[1:] if word.isdecimal() and len(word) < 4), 1)
        after = do(state, Act(verb, thing, amount))
        return Answer(after, "done .", End.SOLVED) if solved(after) else Answer(after, _hands(after))

    def gold(self, state: CraftState) -> str:
        act = gold(state)
        return _written(state.book, act) if act else _looking(state.book)

    def demonstrate(self, state: CraftState, rng: Random) -> str:
        """Does half of what it does at random, and asks for recipes where they are not told."""
        act = gold(state)
        if not state.book.told and rng.random() < 0.25:
            return f"recipe {rng.choice([*state.book.number])}" + ("" if state.book.full else " .")
        if act is None or rng.random() < 0.5:
            options = possible(state)
            return _written(state.book, rng.choice(options)) if options else _looking(state.book)
        return _written(state.book, act)

    def potential(self, state: CraftState) -> float:
        """The share of the way that is behind: 1 − turns still needed / turns needed at first, at least 0."""
        return max(0.0, 1.0 - distance(state) / state.book.start_distance)

    def admissible(self, state: CraftState) -> Sequence[str]:
        return [_written(state.book, act) for act in possible(state)] or [_looking(state.book)]

    def state_key(self, state: CraftState) -> str:
        what = repr((state.book.task.id, *state[1:]))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()


def _written(book: Book, act: Act) -> str:
    if act.verb == "get" and (book.batch > 1 or not book.full):
        return (
            f"get {act.amount} {book.names[act.thing]}"
            if book.full
            else f"get {book.names[act.thing]} {act.amount}"
        )
    return f"{act.verb} {book.names[act.thing]}" + ("" if book.full else " .")


def _looking(book: Book) -> str:
    return "inventory" if book.full else "inventory ."


def _hands(state: CraftState) -> str:
    names = state.book.names
    held = " , ".join(f"{names[i]} {n}" for i, n in enumerate(state.have) if n) or "nothing"
    return f"{'You have' if state.book.full else 'have'} {held} ."
