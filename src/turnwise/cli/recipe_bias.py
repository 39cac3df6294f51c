"""The bias of a whole recipe: looked up by its parts and their options, or computed."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from turnwise.trainers.lab.recipe_bias import Composition, ProcessBias, changes_objective, recipe_bias
from turnwise.trainers.recipe.part import Part
from turnwise.trainers.recipe.schema import Recipe, plain
from turnwise.trainers.run.parts import build_parts

SEVERAL = ("shape", "loss", "signals", "guide", "source")


def bias_of(recipe: Recipe, *, compute: bool) -> dict[str, ProcessBias] | None:
    """By process what the first step of a recipe does; None where it is not known and not to be computed.

    What was computed once is kept in ``~/.cache/turnwise/bias`` (``XDG_CACHE_HOME``).
    """
    key = json.dumps(_parts(recipe), sort_keys=True)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    file = home / "turnwise" / "bias" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
    if file.is_file():
        kept: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return {name: ProcessBias.from_json(one) for name, one in kept.items()}
    if not compute:
        return None
    found = recipe_bias(composition(recipe), recipe.rollout.group_size)
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(f".{os.getpid()}")
    aside.write_text(json.dumps({name: one.to_json() for name, one in found.items()}), "utf-8")
    aside.replace(file)
    return found


def composition(recipe: Recipe) -> Composition:
    """The parts of a recipe that decide its first step."""
    built = build_parts(recipe)
    strategy = recipe.rollout.strategy.component("strategy")
    hidden = [f"strategy {strategy.name}"] if strategy.gives and not strategy.only_measures else []
    hidden += [f"guide {part.name}" for part in recipe.guide]
    left_out = [f"loss {term.name}" for term in built.objective.terms if changes_objective(term.loss)]
    if recipe.reward.name != Recipe.model_fields["reward"].default.name:
        left_out.append(f"what reward {recipe.reward.name} does to the environment's")
    left_out += [f"source {part.name}" for part in recipe.source]
    learned = frozenset(
        name for one in recipe.sources if one.entry.learns for name in one.entry.gives if name in recipe.needs
    )
    return Composition(
        built.credit,
        built.filter,
        built.shapes,
        built.objective.reduce,
        recipe.needs - {"reference"},
        learned,
        tuple(hidden),
        tuple(left_out),
    )


def _parts(recipe: Recipe) -> dict[str, Any]:
    """All that the bias depends on."""
    from turnwise import __version__

    single = ("judge", "reward", "credit", "filter", "reduce", "teacher")
    parts: dict[str, Part | list[Any] | int | str] = {seam: plain(getattr(recipe, seam)) for seam in single}
    parts |= {seam: [plain(part) for part in getattr(recipe, seam)] for seam in SEVERAL}
    strategy, size = plain(recipe.rollout.strategy), recipe.rollout.group_size
    return {**parts, "strategy": strategy, "group_size": size, "version": __version__}
