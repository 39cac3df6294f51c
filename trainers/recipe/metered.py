"""Choices of a recipe that do not go together with planted episodes of a hack meter."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from turnwise.trainers.recipe.problems import RecipeProblem
from turnwise.trainers.recipe.schema import Recipe


def misfits_of_the_meter(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Rewards and judges that cannot be shown single episodes which nothing is learned from, as planted ones are."""
    meter = recipe.hack_meter
    if meter is None or not meter.planted:
        return
    judges = [part.component("judge") for part in recipe.judge]
    given = {name for judge in judges for name in judge.gives}
    remedy = "Set hack_meter.planted: 0, and only what failed episodes are paid is tested; or leave hack_meter out."
    for part in recipe.reward:
        entry = part.component("reward")
        late = part.needs("reward") - given
        if entry.whole or "votes" in entry.reads:
            yield RecipeProblem(
                f"hack_meter plants single episodes, and reward {part.name!r} pays by comparing several.",
                remedy,
            )
        elif late:
            yield RecipeProblem(
                f"reward {part.name!r} pays for {min(late)!r}, which is measured of the batch that is learned from, and the planted "
                "episodes of hack_meter are not in it.",
                remedy,
            )
    for judge in judges:
        if inspect.isclass(judge.target):
            yield RecipeProblem(
                f"judge {judge.name!r} remembers what it has seen, and would remember the planted episodes of hack_meter.",
                remedy,
            )
