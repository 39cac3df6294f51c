"""Numbers of a recipe by their dotted keys: which may change during a run, and what they are."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, NamedTuple

from turnwise.errors import RecipeError
from turnwise.trainers.recipe.part import GuidePart, Part
from turnwise.trainers.recipe.schema import Recipe, Section

LIVE = (
    "guide", "judge", "proposer", "source", "reward", "credit", "filter", "shape", "correction", "loss", "reduce",
    "rollout.strategy", "rollout.episode_tokens", "sampling.temperature", "optimizer.learning_rate",
    "optimizer.max_grad_norm", "optimizer.value_weight", "optimizer.epochs", "optimizer.minibatches", "optimizer.resets",
)  # fmt: skip
"""Keys that are looked at anew in every update; all else is made once, when the run begins."""
_SEAMS = {"sinks": "sink", "signals": "signal"}


def number_at(recipe: Recipe, key: str) -> float:
    """The number that a dotted key leads to; options that are left out have their component's default.

    >>> from turnwise.trainers.recipe.load import load_recipe
    >>> number_at(load_recipe("shop-quick"), "loss.clip.high")
    0.2

    Raises:
        RecipeError: the key leads nowhere, to no number, or to one that is fixed when the run begins.
    """
    if not any(key == live or key.startswith(f"{live}.") for live in LIVE):
        near = difflib.get_close_matches(key, LIVE, n=1, cutoff=0.85)
        if near and not _is_known(key):
            raise RecipeError(f"There is no number {key!r} to schedule.", f"Did you mean {near[0]!r}?")
        raise RecipeError(
            f"{key!r} is fixed when a run begins, so it can have no schedule.",
            f"These can: {', '.join(LIVE)}, and numbers inside of them.",
        )
    value = [*_way_to(recipe, key)][-1].value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RecipeError(f"{key!r} is {value!r}, which is no number to schedule.", "Name a number.")
    return value


def _is_known(key: str) -> bool:
    """Say whether a recipe has this key, at least as a section."""
    section: Any = Recipe
    for step in key.split("."):
        field = getattr(section, "model_fields", {}).get(step)
        if field is None:
            return False
        section = field.annotation
    return True


def part_with(recipe: Recipe, key: str) -> tuple[Part, str] | None:
    """The part whose option a dotted key leads to, with its kind; None where it is no part's.

    >>> from turnwise.trainers.recipe.load import load_recipe
    >>> part_with(load_recipe("shop-quick"), "loss.clip.high")[1], part_with(load_recipe("shop-quick"), "updates")
    ('loss', None)
    """
    parts = [(step.value, step.seam) for step in _way_to(recipe, key) if isinstance(step.value, Part)]
    return parts[-1] if parts else None


class _PathStep(NamedTuple):
    """Value that a key leads to on its way, and the kind of the part that it is in."""

    value: Any
    seam: str


def _way_to(recipe: Recipe, key: str) -> Iterator[_PathStep]:
    """Yield what each name of a dotted key leads to.

    Raises:
        RecipeError: one leads nowhere.
    """
    value: Any = recipe
    seam = ""
    for name in key.split("."):
        found = _inside(value, name, seam)
        if found is None:
            raise RecipeError(
                f"The recipe has no {key!r}, which is given a schedule.", "Check the key (docs/recipes.md)."
            )
        opens = isinstance(value, Section) or (
            isinstance(value, GuidePart) and name in ("loss", "correction")
        )
        value, seam = found[0], _SEAMS.get(name, name) if opens else seam
        yield _PathStep(value, seam)


def _inside(value: Any, name: str, seam: str) -> tuple[Any] | None:
    """Return what a key leads to in a section, a list of parts, or a part; None where it leads to nothing."""
    if isinstance(value, Section):
        return (getattr(value, name),) if name in type(value).model_fields else None
    if isinstance(value, list):
        named = [part for part in value if isinstance(part, Part) and part.name == name]
        if len(named) > 1:
            raise RecipeError(
                f"The recipe names {name!r} {len(named)} times, so that nothing says whose number is scheduled.",
                "Schedule a part that is named once.",
            )
        return (named[0],) if named else None
    if not isinstance(value, Part):
        return None
    if name in type(value).model_fields:
        return (getattr(value, name),)
    own = value.component(seam).options
    options = {**own, **value.options}
    if name not in options:
        return None
    given: Any = options[name]
    # `high: 1` is as good a number as 1.0, and no whole one for that
    return (float(given) if type(given) is int and isinstance(own.get(name), float) else given,)
