"""``turnwise/Shop-v0``: buy what the instruction asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.acting import one_act_rules
from turnwise.envs.core import AgentEnv, EndReason, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.shop import solver
from turnwise.envs.shop.actions import TOOLS, do_click, do_search, possible, read
from turnwise.envs.shop.knobs import knobs_of
from turnwise.envs.shop.render import SYSTEM, render
from turnwise.envs.shop.scripts import planned
from turnwise.envs.shop.state import Page, ShopState
from turnwise.envs.shop.tasks import draw_task, without_kind, world_of
from turnwise.tasks.core import Json, Split, Task, canonical
from turnwise.tools.core import find_tool


class ShopEnv(AgentEnv[ShopState]):
    """Search, compare, choose options, buy: WebShop's rules on procedural catalogues."""

    tools = TOOLS
    turn_limit = 15
    calls_per_turn: ClassVar[int | None] = 1
    max_trivial_score: ClassVar[float] = 0.15
    copies: ClassVar[str] = "the wish names what is to be found"
    blocking: ClassVar[bool] = False
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        f"{products}_products": {"products": products, "catalogues": 1, "option_groups": 2, "price_cap": True}
        for products in (1_000, 100_000)
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, knobs_of(knobs))

    @classmethod
    def impossible(cls, task: Task, rng: Random) -> Task | None:
        """The same wish for a kind of thing that no catalogue has: whatever is bought is of another kind, and scores 0."""
        return without_kind(task, rng)

    def initial(self, task: Task) -> tuple[ShopState, Messages]:
        state = ShopState(world_of(task))
        system = SYSTEM[state.world.layout.pages]
        if not state.world.layout.compact:
            system += one_act_rules("action", task.options.get("turn_limit", self.turn_limit))
        return state, Messages((Message("system", system), Message("user", render(state))))

    def transition(self, state: ShopState, action: Message) -> Transition[ShopState]:
        call = read(action)
        chosen = find_tool(self.tools, call.name)
        argument = next(iter(chosen.validate(call).values()))
        after = do_search(state, argument) if chosen.spec.name == "search" else do_click(state, argument)
        if after.page is Page.BOUGHT:
            return self._bought(after)
        just_chosen = after.page is Page.ITEM and after.chosen != state.chosen
        return Transition(after, render(after, just_chosen=just_chosen))

    def gold(self, state: ShopState) -> str:
        return solver.gold(state)

    def demonstrate(self, state: ShopState, rng: Random) -> str:
        """Takes any product on the page whose title has a word that was asked for, and buys it."""
        return solver.demonstrate(state, rng)

    def plan(self, script: str, task: Task) -> Sequence[str]:
        """The actions of a shopper without a model: ``first`` or ``scan`` (scripts.py)."""
        turns: int = task.options.get("turn_limit", self.turn_limit)
        return planned(script, canonical(task.to_json()), turns)

    def potential(self, state: ShopState) -> float:
        """The share of what is right so far: the target found, a fitting item open, its options chosen."""
        return solver.potential(state)

    def admissible(self, state: ShopState) -> Sequence[str]:
        return possible(state)

    def state_key(self, state: ShopState) -> str:
        what = repr((state.world.task.id, *state[1:]))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()

    def _bought(self, state: ShopState) -> Transition[ShopState]:
        result = state.score()
        end = EndReason.SOLVED if result.total == 1.0 else EndReason.FAILED
        return Transition(state, render(state), {"outcome": result.total}, end, result._asdict())
