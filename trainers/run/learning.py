"""Parts of a recipe that the learner alone needs: for benchmarks that learn without a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from turnwise.agents.tokens.template import ToolsFormat
from turnwise.errors import RecipeError
from turnwise.trainers.learn.objective import Objective
from turnwise.trainers.learn.options import OptimizerOptions
from turnwise.trainers.recipe.load import load_recipe
from turnwise.trainers.run.door import descent
from turnwise.trainers.run.parts import build_parts


class LearningSetup(NamedTuple):
    """A recipe's small model, who shows it what to do, and how it learns.

    Attributes:
        suite: whose tasks are shown; the first of several.
        demonstrator: the script that plays them.
        sizes: of the model that is made.
        optimizer: the learner's options.
        objective: what it descends.
        temperature: at which an engine would sample.
        max_tokens: of one action.
        tools: how tools are shown.
        device: the recipe's.
    """

    suite: str
    demonstrator: str
    sizes: Mapping[str, Any]
    optimizer: OptimizerOptions
    objective: Objective
    temperature: float
    max_tokens: int
    tools: ToolsFormat
    device: str


def learning_setup(name: str, overrides: Mapping[str, Any]) -> LearningSetup:
    """Read it from a recipe that makes its model from scratch.

    Raises:
        RecipeError: the recipe is not right, or loads its model.
    """
    recipe = load_recipe(name, overrides)
    if recipe.model.scratch is None:
        raise RecipeError(f"The recipe {name} loads its model.", "Name one with model.scratch.")
    return LearningSetup(
        suite=next(iter(recipe.suites)),
        demonstrator=recipe.warm_start.demonstrator if recipe.warm_start else "gold",
        sizes=recipe.model.scratch.model_dump(exclude={"text_episodes"}),
        optimizer=descent(recipe.optimizer),
        objective=build_parts(recipe).objective,
        temperature=recipe.sampling.temperature,
        max_tokens=recipe.sampling.max_tokens,
        tools=recipe.sampling.tools,
        device=recipe.device,
    )
