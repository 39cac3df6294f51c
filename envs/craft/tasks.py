"""Tasks of crafting: knobs → recipe trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeAlias

from turnwise.envs.craft.knobs import CraftKnobs
from turnwise.envs.craft.solver import distance, missing
from turnwise.envs.craft.state import Book, begin
from turnwise.envs.craft.vocabulary import ASKS, MADE, RAW
from turnwise.envs.worlds.knobs import first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/Craft-v0"
_PLENTY = 99
Recipes: TypeAlias = dict[str, dict[str, int]]


def draw_task(rng: Random, split: Split, knobs: CraftKnobs) -> Task:
    """A recipe tree that no other split can draw."""

    spoken = split if knobs.text == "full" else Split.TRAIN  # whose language

    def draw(rng: Random) -> Task | None:
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
        length, (low, high) = distance(start), knobs.horizon
        if not low <= length <= min(high, knobs.turn_limit):
            return None
        return Task(ENV, prompt, {**full.options, **options}, {"turns": int(length)})

    return first_drawn(draw, rng, split, "craft")


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
