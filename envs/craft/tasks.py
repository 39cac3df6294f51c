"""Tasks of crafting: knobs → recipe trees."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Literal, TypeAlias

import pydantic

from turnwise.envs.craft.book import MADE, RAW, Book, begin, distance, missing
from turnwise.envs.worlds.knobs import WorldKnobs, first_drawn, in_split
from turnwise.tasks.core import Json, Split, Task

ENV = "turnwise/Craft-v0"
_PLENTY = 99
Recipes: TypeAlias = dict[str, dict[str, int]]


class CraftKnobs(WorldKnobs, extra="forbid", frozen=True):
    """What a suite of crafting may set."""

    depth: int = pydantic.Field(2, ge=1, le=8)  # of the goal's recipe tree
    parts: tuple[int, int] = (1, 2)  # different ones of a recipe, at least and at most
    amount: int = pydantic.Field(2, ge=1, le=5)  # of one part, at most
    raw: int = pydantic.Field(4, ge=1, le=12)  # raw materials
    width: int = pydantic.Field(2, ge=1, le=5)  # things of each level; those not needed distract
    batch: int = pydantic.Field(1, ge=1, le=20)  # of a raw material that one turn may fetch
    horizon: tuple[int, int] = (1, 1000)  # turns of a shortest plan
    recipes: Literal["told", "asked"] = "told"  # asked: one by one, with "recipe X"
    spare: int | None = None  # raw material beyond what is needed; None: plenty
    slip: float = pydantic.Field(0.0, ge=0, le=0.5)  # probability that an act fails, without loss

    @pydantic.field_validator("horizon", "parts", mode="before")
    @classmethod
    def _range(cls, value: Json) -> Json:
        return (1, value) if isinstance(value, int) else value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> CraftKnobs:
        if self.parts[1] > self.raw:
            raise ValueError("parts must be at most the raw materials")
        return self


def draw_task(rng: Random, split: Split, knobs: CraftKnobs) -> Task:
    """A recipe tree that no other split can draw."""

    def draw(rng: Random) -> Task | None:
        raw = rng.sample(RAW, knobs.raw)
        recipes = _recipes(rng, raw, knobs)
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
        prompt = (
            f"Make {'an' if goal[0] in 'aeiou' else 'a'} {goal}."
            if knobs.text == "full"
            else f"make {goal} ."
        )
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


def _recipes(rng: Random, raw: list[str], knobs: CraftKnobs) -> Recipes:
    """Recipes level by level; each uses at least one thing of the level below it."""
    names = iter(rng.sample(MADE, knobs.depth * knobs.width))
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
