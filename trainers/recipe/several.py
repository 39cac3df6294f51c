"""Choices of a recipe that do not fit suites in which several agents are trained."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.agents.multi_agent import agents_of
from turnwise.envs.core import EndReason
from turnwise.envs.registry import env_class, get_suite
from turnwise.errors import RecipeError
from turnwise.trainers.kit.toy_batches import episode
from turnwise.trainers.recipe.part import Part, payer_of
from turnwise.trainers.recipe.problems import RecipeProblem
from turnwise.trainers.recipe.schema import Recipe


def misfits_of_several(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield a problem for each reward that would pay an agent for what another one won."""
    for part in recipe.reward:
        for name in recipe.suites if goes_by_success(part) else ():
            suite = get_suite(name)
            first, *others = agents_of(suite)
            paid = [agent for agent in others if agent not in recipe.rollout.opponents]
            if paid and not getattr(env_class(suite.env), "one_outcome", False):
                yield RecipeProblem(
                    f"reward {part.name!r} pays by success, which in {name} is that of {first!r}; {', '.join(paid)} would be paid for it too.",
                    f"Set reward: as_is, or name who plays {', '.join(paid)} (rollout.opponents).",
                )


def goes_by_success(part: Part) -> bool:
    """Say whether a reward looks at who solved the task, beside what was earned.

    >>> [goes_by_success(Part(name=name)) for name in ("success", "rise", "as_is", "renorm")]
    [True, True, False, False]
    """
    ends = (EndReason.SOLVED, EndReason.FAILED)
    try:
        paid = [
            payer_of([part]).pay([[episode([0.3, 0.4], end=end) for end in order]])
            for order in (ends, ends[::-1])
        ]
    except (RecipeError, RuntimeError):  # it needs what a toy has not
        return False
    returns = [[one.trajectory.total_reward for group in each.groups for one in group] for each in paid]
    return returns[0] != returns[1]
