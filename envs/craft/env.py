"""``turnwise/Craft-v0``: make things of things."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import ClassVar

from turnwise.envs.core import EndReason, RewardKind, Transition
from turnwise.envs.craft import orders, render, solver
from turnwise.envs.craft.actions import CraftAct, do, possible, read, write
from turnwise.envs.craft.knobs import CraftKnobs
from turnwise.envs.craft.state import Book, CraftState, begin, solved
from turnwise.envs.craft.tasks import draw_task
from turnwise.envs.craft.vocabulary import FORMS
from turnwise.envs.messages import Message
from turnwise.envs.worlds.commands import CommandAnswer, CommandEnv, WorldCache
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.one_command import Forms
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_book = WorldCache(Book)
_LOOK = CraftAct("inventory")


class CraftEnv(CommandEnv[CraftState]):
    """Fetch raw materials and make things of them, up a recipe tree."""

    turn_limit = 30
    reward_components = MappingProxyType(
        {
            **CommandEnv.reward_components,
            "lure": RewardKind.STEP,
        }  # a suite's knob; paid at once for what costs later
    )
    max_trivial_score: ClassVar[float] = 0.15
    forms: ClassVar[Forms | None] = FORMS
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        "depth_4": {"depth": 4, "width": 3, "turn_limit": 200}
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(CraftKnobs, knobs, "craft"))

    def begin(self, task: Task) -> CraftState:
        return begin(_book(task))

    def opening(self, state: CraftState) -> tuple[str, str]:
        system, text = render.opening(state)
        return system, f"{text}\n{orders.order_line(state.book, 0)}" if state.book.orders else text

    def obey(self, state: CraftState, words: Sequence[str]) -> CommandAnswer[CraftState]:
        try:
            answer = self._done(state, words)
        except ToolError as error:
            raise ToolError(render.styled(state.book, str(error))) from None
        return answer._replace(text=render.styled(state.book, answer.text))

    def _done(self, state: CraftState, words: Sequence[str]) -> CommandAnswer[CraftState]:
        book = state.book
        act = read(book, words)
        if act.verb == "inventory":
            return CommandAnswer(state, orders.tell(state, state) if book.orders else render.hands(state))
        if act.verb == "recipe" and book.orders:
            return CommandAnswer(orders.ask(state, act.thing), render.answer(book, act.thing))
        if act.verb == "recipe":
            return CommandAnswer(state, render.answer(book, act.thing))
        if book.slip and self.rng("slip").random() < book.slip:
            return CommandAnswer(state, "it slips and nothing happens .")
        after = do(state, act)
        if solved(after):
            return CommandAnswer(after, "done .", EndReason.SOLVED)
        return CommandAnswer(after, orders.tell(state, after) if book.orders else render.hands(after))

    def transition(self, state: CraftState, action: Message) -> Transition[CraftState]:
        """A command carried out, with what is paid at once for spoiling material where a suite says so."""
        change, lure = super().transition(state, action), float(self.task.options.get("lure", 0.0))
        if not lure or not orders.spoiled(state, change.state):
            return change
        return change._replace(rewards={**change.rewards, "lure": lure})

    def needs(self, state: CraftState) -> Sequence[str]:
        return orders.needed(state) if state.book.orders else ()

    def gold(self, state: CraftState) -> str:
        return write(state.book, solver.gold(state) or _LOOK)

    def demonstrate(self, state: CraftState, rng: Random) -> str:
        """Does half of what it does at random, and asks for recipes where they are not told."""
        return write(state.book, solver.demonstrate(state, rng) or _LOOK)

    def potential(self, state: CraftState) -> float:
        """The share of the way that is behind: 1 − turns still needed / turns needed at first, at least 0."""
        return max(0.0, 1.0 - solver.distance(state) / solver.start_distance(state.book))

    def admissible(self, state: CraftState) -> Sequence[str]:
        return [write(state.book, act) for act in possible(state) or [_LOOK]]

    def state_key(self, state: CraftState) -> str:
        day = (state.served, state.learned) if state.book.orders else ()
        what = repr((state.book.task.id, state.have, state.stock, *day))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()
