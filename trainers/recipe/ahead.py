"""Choices of a recipe that cannot be played ahead of learning (``scale.staleness``), and why."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.trainers.core import Stateful
from turnwise.trainers.recipe.part import made
from turnwise.trainers.recipe.problems import RecipeProblem
from turnwise.trainers.recipe.schema import Recipe
from turnwise.trainers.sampler.core import Sampler

PLAYED_BY = ("rollout", "sampling", "engine", "guide", "judge", "proposer")
"""Sections that say how episodes are played."""


def misfits_of_playing_ahead(recipe: Recipe, sampler: Sampler) -> Iterator[RecipeProblem]:
    """Yield a problem for each choice that cannot be played ahead of learning."""
    if not recipe.scale.staleness:
        return
    rollout, remedy = recipe.rollout, "Set scale.staleness: 0, or"
    if not rollout.groups:
        yield RecipeProblem(
            "scale.staleness plays ahead of learning, and rollout.groups: 0 plays nothing.",
            f"{remedy} raise rollout.groups.",
        )
    if rollout.refill:
        yield RecipeProblem(
            "scale.staleness admits the groups of later updates by their number, and with rollout.refill an update has as "
            "many as turn out to be needed.",
            f"{remedy} leave rollout.refill out.",
        )
    if sampler.returns or sampler.by_success:
        yield RecipeProblem(
            f"rollout.sampler {rollout.sampler.name!r} chooses by what the update before showed, which is not known when "
            "scale.staleness plays ahead.",
            f"{remedy} choose a sampler that does not, such as uniform.",
        )
    players = [*((part, "guide") for part in recipe.guide), *((part, "judge") for part in recipe.judge)]
    for part, seam in players:
        if isinstance(made(part, seam), Stateful):
            yield RecipeProblem(
                f"{seam} {part.name!r} remembers what was played, and with scale.staleness later updates are played before an "
                "earlier one is saved.",
                f"{remedy} leave it out.",
            )
    strategy = rollout.strategy.component("strategy")
    if strategy.shared_turns or strategy.gives:
        yield RecipeProblem(
            f"The forks of rollout.strategy {rollout.strategy.name!r} are compared as one policy's, and with scale.staleness "
            "the weights change between them.",
            f"{remedy} use rollout.strategy: chain.",
        )
    for key, part in recipe.schedule.items():
        options = {**part.component("schedule").options, **part.options}
        late = next((name for name in options.values() if str(name).startswith("dev_")), None)
        if late is not None:
            yield RecipeProblem(
                f"schedule {part.name!r} of {key} goes by {late}, which with scale.staleness is measured while the next update is "
                "learned.",
                f"{remedy} let it go by another metric.",
            )
        if key.split(".")[0] in PLAYED_BY:
            yield RecipeProblem(
                f"schedule changes {key} from update to update, and with scale.staleness several updates are played at a time.",
                f"{remedy} leave this key out of the schedule.",
            )
