"""reasoning-gym: questions that are generated and judged by its 106 data sets. `turnwise worlds add reasoning-gym`"""

from __future__ import annotations

import functools
from pathlib import Path
from random import Random

from turnwise.envs.foreign.env import ForeignEnv
from turnwise.errors import EnvError, NotFoundError
from turnwise.tasks.core import Json, Split, Suite, Task

ENV = "foreign/ReasoningGym-v0"
_GOLDLESS = frozenset({"boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"})
"""Data sets whose items have no answer of their own: many answers are right."""


class ReasoningGymEnv(ForeignEnv):
    """One question of a data set, and one answer; the score is the data set's own, between 0 and 1."""

    system = "Think if you like. Give the final answer between <answer> and </answer>."
    world = "reasoning-gym"
    side = Path(__file__).parent / "sides" / "reasoning_gym_side.py"
    turn_limit = 1
    # Some data sets have few answers, and some pay for any text: game_of_life_halting, propositional_logic.
    max_trivial_score = 0.5

    @classmethod
    def generate(cls, rng: Random, split: Split, *, dataset: str = "", **knobs: Json) -> Task:
        """A seed of a data set; splits have seeds of their own, and ``knobs`` are the data set's."""
        if not dataset:
            raise EnvError(
                "ReasoningGym-v0 has no tasks of its own.", "Name a data set: reasoning-gym:chain_sum."
            )
        seed = cls.seed_of(rng, split)
        known = {"gold_known": False} if dataset in _GOLDLESS else {}
        options = {"dataset": dataset, "seed": seed, **({"knobs": knobs} if knobs else {}), **known}
        return Task(ENV, f"reasoning-gym {dataset}, seed {seed}", options)


@functools.cache
def _datasets() -> frozenset[str]:
    return frozenset(ReasoningGymEnv.ask_world())


def suite_of(path: str) -> Suite:
    """The suite ``reasoning-gym:DATASET``.

    Raises:
        NotFoundError: there is no such data set.
    """
    if path not in _datasets():
        raise NotFoundError("data set of reasoning-gym", path, _datasets())
    return Suite(f"reasoning-gym:{path}", ENV, f"reasoning-gym's data set {path}.", {"dataset": path})
