"""The parts of a recipe, built: the functions that an update passes its batch through."""

from __future__ import annotations

from typing import NamedTuple

from turnwise.trainers.core import Credit, Filter, Judge, Reward
from turnwise.trainers.objective import Objective, Term
from turnwise.trainers.play import Strategy
from turnwise.trainers.schema import Recipe


class Parts(NamedTuple):
    """Functions with their options fixed."""

    strategy: Strategy
    judge: Judge
    reward: Reward
    filter: Filter
    credit: Credit
    objective: Objective


def build_parts(recipe: Recipe) -> Parts:
    """Build every part that the recipe names.

    Raises:
        RecipeError: an option does not fit.
    """
    terms = [Term(part.name, part.build("loss"), part.weight) for part in recipe.loss]
    return Parts(
        strategy=recipe.rollout.strategy.build("strategy"),
        judge=recipe.judge.build("judge"),
        reward=recipe.reward.build("reward"),
        filter=recipe.filter.build("filter"),
        credit=recipe.credit.build("credit"),
        objective=Objective(
            terms,
            recipe.reduce.build("reduce"),
            recipe.correction.build("correction"),
            reference="reference" in recipe.needs,
        ),
    )
