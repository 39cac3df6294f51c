"""The phases of a run: what each update optimises, one recipe after the other (Tulu 3: preferences, then verified rewards)."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pydantic

from turnwise.trainers.recipe.algorithms import expand, get_algorithm, settle
from turnwise.trainers.recipe.dotted import changed
from turnwise.trainers.recipe.errors import explain_invalid
from turnwise.trainers.recipe.no_effect import blind_losses
from turnwise.trainers.recipe.part import Part
from turnwise.trainers.recipe.problems import RecipeProblem, found_by
from turnwise.trainers.recipe.schema import Phase, Recipe, plain

MAY_CHANGE = (
    "algorithm", "guide", "source", "teacher", "judge", "proposer", "signals", "reward", "credit", "filter", "shape", "correction",
    "loss", "reduce", "schedule", "optimizer", "sampling.temperature", "rollout.groups", "rollout.group_size",
    "rollout.sampler", "rollout.refill", "rollout.strategy", "rollout.episode_tokens", "rollout.opponents",
)  # fmt: skip
"""Keys that may be otherwise in a phase; all else a run has once."""


class RunPhase(NamedTuple):
    """A phase as it is carried out.

    Attributes:
        name: as the recipe gives it; empty where it has no phases.
        first: the number of its first update, from 0.
        end: that of the first update after it.
        recipe: what holds in it, without phases; its ``updates`` are those of the phase.
        tasks: the most that the updates before it may have played.
    """

    name: str
    first: int
    end: int
    recipe: Recipe
    tasks: int = 0


def phases_of(recipe: Recipe) -> tuple[RunPhase, ...]:
    """The phases of a recipe in order; a recipe without any is one phase, whose name is empty.

    >>> from turnwise.trainers.recipe.load import load_recipe
    >>> [(phase.name, phase.first, phase.end, phase.recipe.loss[0].name) for phase in phases_of(load_recipe("tulu3"))]
    [('dpo', 0, 20, 'dpo'), ('rlvr', 20, 50, 'clip')]

    Raises:
        RecipeError: a phase changes a key that there is not.
        pydantic.ValidationError: it gives one a value that it cannot have.
    """
    if not recipe.phases:
        return (RunPhase("", 0, recipe.updates, recipe),)
    found, tasks = list[RunPhase](), 0
    for phase, first in zip(recipe.phases, _firsts(recipe), strict=True):
        own = completed(_recipe_of(recipe, phase, first))
        found.append(RunPhase(phase.name, first, first + phase.updates, own, tasks))
        tasks += phase.updates * own.most_groups
    return tuple(found)


def phase_at(phases: Sequence[RunPhase], update: int) -> RunPhase:
    """The phase of an update, counted from 0; the last one from its end on."""
    return next((phase for phase in phases if update < phase.end), phases[-1])


def _recipe_of(recipe: Recipe, phase: Phase, first: int) -> Recipe:
    """Return the recipe that holds in a phase that begins with update ``first``."""
    data: dict[str, Any] = {key: value for key, value in plain(recipe).items() if key != "phases"}
    if first:
        data.pop("warm_start", None)
    changes = dict(phase.set)
    algorithm = (
        get_algorithm(changes["algorithm"], f" (phase {phase.name})") if "algorithm" in changes else None
    )
    if algorithm is not None:
        for key in algorithm.sets:
            data = _without(data, key)
        data, _ = expand(data, algorithm)
    for key, value in changes.items():
        data = changed(data, key, value)
    data |= {"updates": phase.updates}
    data["evaluate"] = {**data["evaluate"], "every": min(recipe.evaluate.every, phase.updates)}
    return Recipe.model_validate(data if algorithm is None else settle(data, algorithm))


def _without(data: dict[str, Any], key: str) -> dict[str, Any]:
    """The keys without the one that a dotted key of one or two steps leads to."""
    section, _, inner = key.rpartition(".")
    if not section:
        return {name: value for name, value in data.items() if name != key}
    return {**data, section: {name: value for name, value in data[section].items() if name != inner}}


def wrong_phases(recipe: Recipe) -> Iterator[RecipeProblem]:
    """Problems with the list of phases itself: names, the count of updates, keys that a phase cannot change."""
    names = [phase.name for phase in recipe.phases]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield RecipeProblem(f"phase {name!r} is named twice.", "Give each phase a name of its own.")
    total = sum(phase.updates for phase in recipe.phases)
    if recipe.phases and "updates" in recipe.model_fields_set and recipe.updates != total:
        yield RecipeProblem(
            f"updates is {recipe.updates}, and the phases have {total} together.",
            "Leave `updates` out, or change a phase's own (`--set phases.NAME.updates=…`).",
        )
    anew = "phases" if recipe.phases else "optimizer.resets"
    if recipe.scale.learners > 1 and (recipe.phases or "optimizer.resets" in recipe.schedule):
        yield RecipeProblem(
            f"{anew} begins the optimizer anew in the middle of a run, and scale.learners {recipe.scale.learners} has several.",
            f"Set scale.learners: 1, or leave {anew} out.",
        )
    for phase in recipe.phases:
        for key in phase.set:
            if not any(key == open or key.startswith(f"{open}.") for open in MAY_CHANGE):
                near = difflib.get_close_matches(key, MAY_CHANGE, n=1)
                yield RecipeProblem(
                    f"phase {phase.name!r} sets {key!r}, which a run has once.",
                    f"Did you mean {near[0]!r}?" if near else f"A phase may set {', '.join(MAY_CHANGE)}.",
                )


def wrong_contents(
    recipe: Recipe, check: Callable[[Recipe], Iterable[RecipeProblem]]
) -> Iterator[RecipeProblem]:
    """Problems with what the phases set: keys that there are not, values that they cannot have, and what ``check`` finds."""
    for phase, first in zip(recipe.phases, _firsts(recipe), strict=True):
        lead, made = f"phase {phase.name!r}: ", list[Recipe]()
        try:
            yield from found_by(
                lambda p=phase, n=first, m=made: m.append(_recipe_of(recipe, p, n)), lead=lead
            )
        except pydantic.ValidationError as error:
            for cause, remedy in explain_invalid(error, {}):
                yield RecipeProblem(f"{lead}{cause}", remedy)
        for one in made:
            for cause, remedy in check(one):
                yield RecipeProblem(f"{lead}{cause}", remedy)


def completed(recipe: Recipe) -> Recipe:
    """The recipe with what it leaves out: the updates that its phases have together; without phases the filter, since what
    a learned signal enters has no advantage of 0 to be dropped, and the correction, which is none where no loss looks at
    advantages."""
    if recipe.phases:
        return recipe.model_copy(update={"updates": sum(phase.updates for phase in recipe.phases)})
    left_out = dict[str, Part]()
    if "filter" not in recipe.model_fields_set and any(chosen.entry.learns for chosen in recipe.sources):
        left_out["filter"] = Part(name="any")
    if "correction" not in recipe.model_fields_set and blind_losses(recipe):
        left_out["correction"] = Part(name="none")
    return recipe.model_copy(update=left_out)


def _firsts(recipe: Recipe) -> list[int]:
    """The first update of each phase, from 0."""
    return [0, *itertools.accumulate(phase.updates for phase in recipe.phases)][:-1]
