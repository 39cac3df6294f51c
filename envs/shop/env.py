"""``turnwise/Shop-v0``: buy what the instruction asks for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.core import AgentEnv, End, Transition
from turnwise.envs.messages import Message, Messages
from turnwise.envs.shop import engine
from turnwise.envs.shop.engine import Page, ShopState, choose, clickables, labels
from turnwise.envs.shop.goals import draw_task, world_of
from turnwise.envs.shop.knobs import knobs_of
from turnwise.envs.shop.pages import render
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.calls import parse_verb
from turnwise.tools.core import ToolCall, ToolError, find_tool, tool

_SYSTEM = {
    "compact": "Shop: search[words] or click[x].",
    "full": (
        "You are in a web shop. Buy the product that the instruction asks for, with the options it names. "
        "Each turn, write one action: search[words] or click[something on the page]. Click an option's value "
        "to choose it; click[buy now] buys and ends the episode."
    ),
}


def search(query: str) -> str:
    """Search the shop for products. Possible on every page."""
    return f"search[{query}]"


def click(target: str) -> str:
    """Click something on the page: a product, an option value or a button."""
    return f"click[{target}]"


class ShopEnv(AgentEnv[ShopState]):
    """Search, compare, choose options, buy: WebShop's rules on procedural catalogues."""

    tools = (tool(search), tool(click))
    turn_limit = 15
    floor: ClassVar[float] = 0.15
    blocking: ClassVar[bool] = False
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        f"{products}_products": {"products": products, "catalogues": 1, "option_groups": 2, "price_cap": True}
        for products in (1_000, 100_000)
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, knobs_of(knobs))

    def initial(self, task: Task) -> tuple[ShopState, Messages]:
        state = ShopState(world_of(task))
        system = _SYSTEM[state.world.layout.pages]
        return state, Messages((Message("system", system), Message("user", render(state))))

    def transition(self, state: ShopState, action: Message) -> Transition[ShopState]:
        call = self._call(action)
        chosen = find_tool(self.tools, call.name)
        argument = next(iter(chosen.validate(call).values()))
        if chosen.spec.name == "search":
            after = engine.search(state, argument)
        else:
            after = engine.click(state, argument)
        if after.page is Page.BOUGHT:
            return self._bought(after)
        just_chosen = after.page is Page.ITEM and after.chosen != state.chosen
        return Transition(after, render(after, just_chosen=just_chosen))

    def gold(self, state: ShopState) -> str:
        world = state.world
        if state.item >= 0 and (best := world.best(state.item)) is not None:
            return f"click[{_towards_purchase(state, best)}]"
        results = state.results if state.query else ()
        if world.target not in results:
            return f"search[{world.gold_query}]"
        if state.page is not Page.RESULTS:  # of a wrong product
            return f"click[{world.layout.buttons.previous}]"
        visible = state.visible
        if world.target in visible:
            return f"click[{labels(state, visible)[visible.index(world.target)]}]"
        page = results.index(world.target) // world.layout.per_page + 1
        buttons = world.layout.buttons
        return f"click[{buttons.next if page > state.number else buttons.previous}]"

    def demonstrate(self, state: ShopState, rng: Random) -> str:
        """A hasty clerk: takes any product on the page whose title has a word that was asked for, and buys
        it. He knows how the shop works, and succeeds about one time in four on ``shop/quick``."""
        if state.item >= 0:
            return f"click[{_towards_purchase(state, choose(state.product, state.world.goal))}]"
        if state.page is not Page.RESULTS or not state.visible:
            return self.gold(state)
        visible, product = state.visible, state.world.catalogue.product
        asked = {*state.world.goal.attributes}
        near = [item for item in visible if asked & {*product(item).title.split()}]
        item = rng.choice(near or list(visible))
        return f"click[{labels(state, visible)[visible.index(item)]}]"

    def potential(self, state: ShopState) -> float:
        """The share of what is right so far: the target found, a fitting item open, its options chosen."""
        world = state.world
        steps = len(world.goal.options) + 3
        found = bool(state.query) and world.target in state.results
        best = world.best(state.item) if state.item >= 0 else None
        if best is None:
            return found / steps
        right = sum(best.get(group) == value for group, value in state.chosen)
        return (2 + right) / steps

    def admissible(self, state: ShopState) -> Sequence[str]:
        if state.page is Page.BOUGHT:
            return ()
        goal = state.world.goal
        thing = " ".join((*goal.attributes, *goal.nouns))
        searches = dict.fromkeys((thing, " ".join(goal.nouns), f"{thing} {' '.join(goal.options)}".strip()))
        return [f"search[{query}]" for query in searches if query] + [
            f"click[{name}]" for name in clickables(state)
        ]

    def state_key(self, state: ShopState) -> str:
        what = repr((state.world.task.id, *state[1:]))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()

    def _call(self, action: Message) -> ToolCall:
        match action.tool_calls:
            case ():
                return parse_verb(action.content, self.tools)
            case (call,):
                return call
            case _:
                raise ToolError("One action per turn: make one call.")

    def _bought(self, state: ShopState) -> Transition[ShopState]:
        result = state.score()
        end = End.SOLVED if result.total == 1.0 else End.FAILED
        return Transition(state, render(state), {"outcome": result.total}, end, result._asdict())


def _towards_purchase(state: ShopState, best: Mapping[str, str]) -> str:
    """What to click next, once an item is open that can score 1."""
    buttons = state.world.layout.buttons
    if state.page is not Page.ITEM:
        return buttons.previous
    chosen = dict(state.chosen)
    names = {pair: name for name, pair in state.product.option_names.items()}
    for pair in best.items():
        if chosen.get(pair[0]) != pair[1]:
            return names[pair]
    return buttons.buy
