"""The bias of a whole recipe: looked up by its parts and their options, or computed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from turnwise.cli.explained import code_state, keep
from turnwise.errors import RecipeError
from turnwise.trainers.lab.help_bias import HelpBias, Step, help_bias, step_of
from turnwise.trainers.lab.recipe_bias import Composition, ProcessBias, changes_objective, recipe_bias
from turnwise.trainers.recipe.part import Part, SourcePart
from turnwise.trainers.recipe.schema import Recipe, plain
from turnwise.trainers.run.parts import build_parts

SEVERAL = ("shape", "loss", "signals", "guide", "source")


def bias_of(recipe: Recipe, *, compute: bool) -> dict[str, ProcessBias] | None:
    """By process what the first step of a recipe does; None where it is not known and not to be computed.

    What was computed once is kept in ``~/.cache/turnwise/bias`` (``XDG_CACHE_HOME``) until any code has changed; the newest
    :data:`~turnwise.cli.explained.MOST` are.
    """
    file = bias_file(recipe)
    with contextlib.suppress(
        OSError, ValueError, KeyError, TypeError, AttributeError
    ):  # not there, or damaged
        kept: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return {name: ProcessBias.from_json(one) for name, one in kept.items()}
    if not compute:
        return None
    found = _with_help(recipe, recipe_bias(composition(recipe), recipe.rollout.group_size))
    keep(file, {name: one.to_json() for name, one in found.items()})
    return found


def bias_file(recipe: Recipe) -> Path:
    """Where the bias of a recipe with these parts, computed by the code that there is, is kept."""
    key = json.dumps([_parts(recipe), code_state()], sort_keys=True)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "turnwise" / "bias" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def composition(recipe: Recipe) -> Composition:
    """The parts of a recipe that decide its first step."""
    built = build_parts(recipe)
    strategy = recipe.rollout.strategy.component("strategy")
    hidden = [f"strategy {strategy.name}"] if strategy.gives and not strategy.only_measures else []
    steps = help_steps(recipe)
    hidden += [f"guide {part.name}" for part in recipe.guide if f"guide/{part.name}" not in steps]
    left_out = [f"guide {part.name}" for part in recipe.guide if f"guide/{part.name}" in steps]
    apart = [term.name for term in built.objective.terms if changes_objective(term.loss)]
    left_out += [f"loss {name}" for name in apart]
    needs = recipe.needs - {"reference"} - _asked_only_by(recipe, frozenset(apart))
    if recipe.reward.name != Recipe.model_fields["reward"].default.name:
        left_out.append(f"what reward {recipe.reward.name} does to the environment's")
    left_out += [f"source {part.name}" for part in recipe.source]
    learned = frozenset(
        name for one in recipe.sources if one.entry.learns for name in one.entry.gives if name in needs
    )
    return Composition(
        built.credit,
        built.filter,
        built.shapes,
        built.objective.reduce,
        needs,
        learned,
        tuple(hidden),
        tuple(left_out),
    )


def _asked_only_by(recipe: Recipe, losses: frozenset[str]) -> frozenset[str]:
    """The signals that only these losses ask for."""
    parts = [
        (recipe.credit, "credit"),
        (recipe.reward, "reward"),
        *((part, "shape") for part in recipe.shape),
    ]
    parts += [(part, "loss") for part in recipe.loss if part.name not in losses]
    others = frozenset(need for part, kind in parts for need in part.needs(kind))
    theirs = frozenset(need for part in recipe.loss if part.name in losses for need in part.needs("loss"))
    return theirs - others


def help_steps(recipe: Recipe) -> dict[str, Step]:
    """By KIND/NAME the help of a recipe whose expected first step can be listed."""
    found: dict[str, Step | None] = {}
    for kind, parts in (("guide", recipe.guide), ("source", recipe.source)):
        for part in parts:
            correction = (part.correction or recipe.correction).build("correction")
            weight = part.weight if isinstance(part, SourcePart) else 1.0
            found[f"{kind}/{part.name}"] = step_of(f"{kind}/{part.name}", part.options, correction, weight)
    if recipe.teacher is not None:
        for loss in recipe.loss:
            found[f"loss/{loss.name}"] = step_of(
                f"loss/{loss.name}", loss.options, recipe.correction.build("correction")
            )
    return {part: step for part, step in found.items() if step is not None}


def _with_help(recipe: Recipe, found: Mapping[str, ProcessBias]) -> dict[str, ProcessBias]:
    """Beside what the recipe does without its help, what it does with each."""
    parts, size = composition(recipe), recipe.rollout.group_size
    helped: dict[str, Mapping[str, HelpBias]] = {}
    for part, step in help_steps(recipe).items():
        with contextlib.suppress(RecipeError):  # signals that help has no exact value of
            helped[part] = help_bias(parts, step, size)
    return {
        name: replace(bias, help={part: tuple(of[name]) for part, of in helped.items() if name in of})
        for name, bias in found.items()
    }


def _parts(recipe: Recipe) -> dict[str, Any]:
    """All of a recipe that the bias depends on."""
    single = ("judge", "reward", "credit", "correction", "filter", "reduce", "teacher")
    parts: dict[str, Part | list[Any] | int | str] = {seam: plain(getattr(recipe, seam)) for seam in single}
    parts |= {seam: [plain(part) for part in getattr(recipe, seam)] for seam in SEVERAL}
    strategy, size = plain(recipe.rollout.strategy), recipe.rollout.group_size
    return {**parts, "strategy": strategy, "group_size": size}
