"""The parts of a recipe, built: the functions that an update passes its batch through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.trainers.core import Credit, Filter, Judge, Reward, Shape, Stateful
from turnwise.trainers.learn.objective import LossTerm, Objective, WholeTerm
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.strategy.runner import Strategy


class Parts(NamedTuple):
    """Functions with their options fixed.

    Attributes:
        paid_signals: the signals that the reward pays for.
        whole_groups: a group that lost an episode to a failure is dropped; else the others are trained on.
    """

    strategy: Strategy
    judge: Judge
    reward: Reward
    credit: Credit
    filter: Filter
    shapes: Sequence[Shape]
    objective: Objective
    paid_signals: frozenset[str] = frozenset()
    whole_groups: bool = False

    @property
    def stateful(self) -> dict[str, Stateful]:
        """Those that remember, by KIND/NAME."""
        terms = {f"loss/{term.name}": term.loss for term in self.objective.whole}
        return {name: part for name, part in terms.items() if isinstance(part, Stateful)}


def build_parts(recipe: Recipe) -> Parts:
    """Build every part that the recipe names.

    Raises:
        RecipeError: an option does not fit.
    """
    return Parts(
        strategy=recipe.rollout.strategy.build("strategy"),
        judge=recipe.judge.build("judge"),
        reward=recipe.reward.build("reward"),
        credit=recipe.credit.build("credit"),
        filter=recipe.filter.build("filter"),
        shapes=[part.build("shape") for part in recipe.shape],
        objective=_objective(recipe),
        paid_signals=recipe.reward.needs("reward"),
        whole_groups=recipe.whole_groups,
    )


def _objective(recipe: Recipe) -> Objective:
    whole = [part for part in recipe.loss if part.whole]
    return Objective(
        [LossTerm(part.name, part.make(), part.weight) for part in recipe.loss if not part.whole],
        recipe.reduce.build("reduce"),
        recipe.correction.build("correction"),
        reference="reference" in recipe.needs,
        whole=[WholeTerm(part.name, part.make(), part.weight) for part in whole],
        signals=frozenset[str]().union(*(part.needs("loss") for part in whole)),
    )
