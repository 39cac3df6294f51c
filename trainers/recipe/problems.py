"""Several mistakes reported at once, each with its remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from turnwise.errors import RecipeError, TurnwiseError


class RecipeProblem(NamedTuple):
    """A mistake in a recipe, and what to do about it."""

    cause: str
    remedy: str


def refuse(problems: Iterable[RecipeProblem], what: str = "The recipe") -> None:
    """Raise one error about all problems; nothing where there is none.

    >>> refuse([])
    >>> refuse([RecipeProblem("No x.", "Give x."), RecipeProblem("No y.", "Give y.")])
    Traceback (most recent call last):
    turnwise.errors.RecipeError: The recipe has 2 mistakes:
    1. No x. → Give x.
    2. No y. → Give y.
    → Fix them all; docs/recipes.md explains every key, docs/recipe-mistakes.md the usual mistakes.
    """
    found = list(dict.fromkeys(problems))
    if len(found) == 1:
        raise RecipeError(*found[0])
    if found:
        numbered = "\n".join(f"{n}. {cause} → {remedy}" for n, (cause, remedy) in enumerate(found, 1))
        raise RecipeError(
            f"{what} has {len(found)} mistakes:\n{numbered}",
            "Fix them all; docs/recipes.md explains every key, docs/recipe-mistakes.md the usual mistakes.",
        )


def found_by(check: Callable[[], object], place: str = "", lead: str = "") -> Iterator[RecipeProblem]:
    """The problem that a check raises, if it raises one; with ``lead`` before it, and the place after."""
    try:
        check()
    except TurnwiseError as error:
        cause = f"{lead}{error.cause}"
        yield RecipeProblem(f"{cause.removesuffix('.')}{place}." if place else cause, error.remedy)
