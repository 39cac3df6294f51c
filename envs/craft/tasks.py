"""Tasks of crafting: knobs → recipe trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeAlias

from turnwise.envs.craft.knobs import CraftKnobs
from turnwise.envs.craft.orders import TASK, drawn_day
from turnwise.envs.craft.solver import distance, fetched, missing
from turnwise.envs.craft.state import Book, begin
from turnwise.envs.craft.vocabulary import ASKS, GOODS, MADE, RAW, STORE
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/Craft-v0"
_PLENTY = 99
_SPARE = 6  # of each raw material of a day of orders, where no knob says more or less
Recipes: TypeAlias = dict[str, dict[str, int]]


def draw_task(rng: Random, split: Split, knobs: CraftKnobs) -> Task:
    """A recipe tree that no other split can draw."""

    spoken = split if knobs.text == "full" else Split.TRAIN  # whose language

    def draw(rng: Random) -> Task | None:
        if knobs.orders:
            return _day(rng, split, spoken, knobs)
        raw = rng.sample(RAW[spoken], knobs.raw)
        recipes = _recipes(rng, raw, knobs, MADE[spoken])
        goal = list(recipes)[-1]
        tree = _below(goal, recipes)
        if not in_split(split, ENV, goal, sorted((name, sorted(recipes[name].items())) for name in tree)):
            return None
        shared = ("text", "commands", "turn_limit", "batch", "slip")
        options: dict[str, Json] = {
            "raw": raw,
            "recipes": [[name, recipes[name]] for name in recipes],
            "goal": goal,
            "told": knobs.recipes == "told",
            **{name: getattr(knobs, name) for name in shared},
        }
        thing = f"{'an' if goal[0] in 'aeiou' else 'a'} {goal}"
        prompt = ASKS.of(spoken)[0].format(thing=thing) if knobs.text == "full" else f"make {goal} ."
        full = Task(ENV, prompt, {**options, "stock": [_PLENTY] * len(raw)})
        start = begin(Book(full))
        if knobs.spare is not None:
            fetch, _ = missing(start)
            options["stock"] = [fetch.get(i, 0) + knobs.spare for i in range(len(raw))]
        return _long_enough(Task(ENV, prompt, {**full.options, **options}), distance(start), knobs)

    return first_drawn(draw, rng, split, "craft")


def _long_enough(task: Task, length: float, knobs: CraftKnobs) -> Task | None:
    """The task with the length of its solution; None where it is too short or too long."""
    low, high = knobs.horizon
    if not low <= length <= min(high, knobs.turn_limit):
        return None
    return Task(ENV, task.prompt, task.options, {"turns": int(length)})


def _day(rng: Random, split: Split, spoken: Split, knobs: CraftKnobs) -> Task | None:
    """A day of orders; None where another split owns it.

    More is left of every raw material than all orders use, by a number that says nothing about what they use.
    """
    raw = rng.sample(STORE[spoken], knobs.raw)
    recipes, orders = drawn_day(
        rng, raw, rng.sample(GOODS[spoken], knobs.orders), knobs.back, knobs.parts, knobs.amount
    )
    if not in_split(split, ENV, "orders", [recipes[name] for name, _ in orders]):
        return None
    options: dict[str, Json] = {
        "raw": raw,
        "recipes": [[name, recipes[name]] for name, _ in orders],
        "goal": orders[-1][0],
        "orders": [[name, earlier] for name, earlier in orders],
        "told": False,
        "asked": knobs.recipes == "asked",
        **{
            name: getattr(knobs, name) for name in ("text", "commands", "turn_limit", "batch", "slip", "lure")
        },
    }
    full = Task(ENV, TASK[knobs.text], {**options, "stock": [_PLENTY] * len(raw)})
    start = begin(Book(full))
    most = max(fetched(start).values())
    spare = _SPARE if knobs.spare is None else knobs.spare
    stock = [most + rng.randint(spare, 3 * spare) for _ in raw]
    return _long_enough(Task(ENV, full.prompt, {**options, "stock": stock}), distance(start), knobs)


def _recipes(rng: Random, raw: list[str], knobs: CraftKnobs, made: Sequence[str]) -> Recipes:
    """Recipes level by level; each uses at least one thing of the level below it."""
    names = iter(rng.sample(made, knobs.depth * knobs.width))
    recipes: Recipes = {}
    below, lower = list(raw), list(raw)
    for _ in range(knobs.depth):
        level = [next(names) for _ in range(knobs.width)]
        for name in level:
            parts = {rng.choice(below): rng.randint(1, knobs.amount)}
            while len(parts) < rng.randint(*knobs.parts):
                parts[rng.choice(lower)] = rng.randint(1, knobs.amount)
            recipes[name] = parts
        below = level
        lower += level
    return recipes


def _below(goal: str, recipes: Mapping[str, Mapping[str, int]]) -> set[str]:
    """The goal and all things that it is made of, raw materials apart."""
    tree, edge = {goal}, [goal]
    for name in edge:
        for part in recipes[name]:
            if part in recipes and part not in tree:
                tree.add(part)
                edge.append(part)
    return tree
