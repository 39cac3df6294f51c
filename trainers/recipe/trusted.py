"""From what a recipe requires of a judge to the rule by which a run looks at it, and requirements that make no sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from turnwise.errors import RecipeError
from turnwise.trainers.recipe.phases import phases_of
from turnwise.trainers.recipe.problems import RecipeProblem, found_by
from turnwise.trainers.recipe.schema import JudgePart, Recipe
from turnwise.trainers.trust.reading import RELATIVE, reading_of
from turnwise.trainers.trust.requirement import ERRORS, Requirement


class JudgeRule(NamedTuple):
    """A requirement of a judge: its place among the recipe's judges, and the part."""

    place: int
    part: JudgePart
    requirement: Requirement

    @property
    def key(self) -> str:
        """A name that no other rule of a run has."""
        return f"{self.part.name}:{self.requirement.reading.signal}:{self.place}"


def judge_rules(recipe: Recipe) -> list[JudgeRule]:
    """The requirements of a recipe, or of a phase's.

    Raises:
        RecipeError: one makes no sense.
    """
    return [
        JudgeRule(n, part, requirement_of(part, recipe.needs))
        for n, part in enumerate(recipe.judge)
        if part.require is not None
    ]


def rules_of_phases(recipe: Recipe) -> list[JudgeRule]:
    """The requirements of all phases of a recipe.

    Raises:
        RecipeError: one makes no sense.
    """
    return [rule for phase in phases_of(recipe) for rule in judge_rules(phase.recipe)]


def requirement_of(part: JudgePart, needs: frozenset[str]) -> Requirement:
    """The requirement of a judge whose signals are needed.

    Raises:
        RecipeError: it names no rate, or one that such a judge has not.
    """
    asked = part.require
    assert asked is not None
    gives = part.component("judge").gives
    most = {name: value for name in ERRORS if (value := getattr(asked, name)) is not None}
    if not most:
        raise RecipeError(
            f"judge {part.name!r}: require names no rate.",
            f"Give one of {', '.join(ERRORS)}, such as {{false_accept: 0.02}}.",
        )
    if not gives:
        raise RecipeError(
            f"judge {part.name!r} gives no signal, so that nothing can be required of it.",
            "Leave require out.",
        )
    reading = reading_of(gives, asked.signal, asked.fold, asked.threshold, needs)
    if reading.signal in RELATIVE and {*most} != {"error"}:
        raise RecipeError(
            f"judge {part.name!r}: {reading.signal!r} says who is better, so that no episode is paid or not by itself.",
            "Require the rate `error`: of pairs of a solved and a failed episode that it puts in the wrong order.",
        )
    return Requirement(most, asked.level, asked.labels, reading)


def misfits_of_requirements(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Yield the problems with what is required of judges."""
    for part in recipe.judge:
        if part.require is not None:
            yield from found_by(lambda p=part: requirement_of(p, recipe.needs))
        if part.budget is not None and "policy" not in part.component("judge").options:
            yield RecipeProblem(
                f"judge {part.name!r} asks no policy, so that its budget has no effect.", "Leave budget out."
            )
