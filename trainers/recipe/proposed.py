"""Proposers of a recipe that do not fit the rest."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.envs.registry import env_class
from turnwise.envs.returned import check_named
from turnwise.trainers.proposer.core import ProposerContext
from turnwise.trainers.recipe.problems import RecipeProblem, found_by
from turnwise.trainers.recipe.schema import Recipe


def misfits_of_proposers(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield a problem for each proposer that is named twice, or whose tasks cannot be played as the suites' are."""
    names = [part.name for part in recipe.proposer]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield RecipeProblem(
            f"proposer {name!r} is named twice, so that nothing says whose tasks are whose.", "Name it once."
        )
    for part in recipe.proposer:  # one whose options make no sense refuses them here
        yield from found_by(lambda p=part: p.build("proposer")(ProposerContext(recipe.seed, 0)))
    if recipe.proposer and recipe.agent is not None:
        yield RecipeProblem(
            f"proposer {names[0]!r} makes tasks of another kind, and a program (`agent`) plays those of its suite.",
            "Leave `proposer` or `agent` out.",
        )
    for env in recipe.proposed_envs if recipe.rollout.env_options else ():
        yield from found_by(
            lambda e=env: check_named(env_class(e), recipe.rollout.env_options, "environment"),
            "rollout.env_options",
        )
