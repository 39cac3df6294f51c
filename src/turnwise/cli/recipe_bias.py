"""The bias of a whole recipe: looked up by its parts and their options, or computed."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from turnwise.cache_folder import cache_folder
from turnwise.cli.explained import code_state, keep
from turnwise.errors import RecipeError
from turnwise.registry import components
from turnwise.trainers.lab.first_step import Composition, MeasuredLoss
from turnwise.trainers.lab.help_bias import HelpBias, LearnedHelp, Step, help_bias, step_of
from turnwise.trainers.lab.recipe_bias import Changes, ProcessBias, recipe_bias, unknown
from turnwise.trainers.recipe.part import LossPart, Part, SourcePart, departing
from turnwise.trainers.recipe.schema import Recipe, plain
from turnwise.trainers.run.parts import build_parts

SEVERAL = ("judge", "reward", "shape", "loss", "signals", "guide", "proposer", "source")


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
    found = recipe_bias(composition(recipe), recipe.rollout.group_size, changes(recipe))
    found = _with_help(recipe, found)
    keep(file, {name: one.to_json() for name, one in found.items()})
    return found


def bias_file(recipe: Recipe) -> Path:
    """Return the file in which the bias of a recipe with these parts, computed by the code that there is, is kept."""
    key = json.dumps([_parts(recipe), code_state()], sort_keys=True)
    return cache_folder("bias") / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"


def composition(recipe: Recipe) -> Composition:
    """The parts of a recipe that decide its first step."""
    built = build_parts(recipe)
    strategy = recipe.rollout.strategy.component("strategy")
    hidden = (f"strategy {strategy.name}",) if strategy.gives and not strategy.only_measures else ()
    steps = help_steps(recipe)
    helpers = [("guide", part.name) for part in recipe.guide] + [
        ("source", part.name) for part in recipe.source
    ]
    listed = [f"{kind} {name}" for kind, name in helpers if f"{kind}/{name}" in steps]
    beside = [f"{kind} {name}" for kind, name in helpers if f"{kind}/{name}" not in steps]
    if recipe.reward != Recipe.model_fields["reward"].default:
        listed.append(
            f"what reward {' + '.join(part.name for part in recipe.reward)} does to the environment's"
        )
    listed += [f"the tasks of proposer {part.name}" for part in recipe.proposer]
    if recipe.rollout.refill:
        listed.append("rollout.refill")
    losses = measured_losses(recipe.loss)
    needs = _needed(recipe)
    everything = needs.union(*(loss.needs for loss in losses))
    learned = frozenset(
        name for one in recipe.sources if one.entry.learns for name in one.entry.gives if name in everything
    )
    return Composition(
        credit=built.credit,
        filter=built.filter,
        shapes=built.shapes,
        reduce=built.objective.reduce,
        correction=built.objective.correction,
        losses=losses,
        needs=needs,
        learned=learned,
        not_measurable=hidden,
        beside=tuple(beside),
        left_out=tuple(listed),
    )


def measured_losses(losses: Sequence[LossPart]) -> list[MeasuredLoss]:
    """Losses of a recipe, or of one of its guides or sources, as they are measured."""
    return [
        MeasuredLoss(part.name, _maker(part), part.weight, part.whole, part.needs("loss")) for part in losses
    ]


def _maker(part: LossPart) -> Callable[[], Callable[..., Any]]:
    """Gives the loss; anew only where it remembers."""
    if inspect.isclass(part.component("loss").target):
        return part.make
    loss = part.make()
    return lambda: loss


def _needed(recipe: Recipe) -> frozenset[str]:
    """The signals that parts other than losses ask for, and those that are made of."""
    parts = [
        (recipe.credit, "credit"),
        (recipe.filter, "filter"),
        *((part, "reward") for part in recipe.reward),
        *((part, "shape") for part in recipe.shape),
    ]
    asked = frozenset(need for part, kind in parts for need in part.needs(kind))
    return asked.union(*(entry.needs for entry in components("signal") if asked & {*entry.gives}))


def changes(recipe: Recipe) -> Changes:
    """The rules that are declared to be unbiased and have other options than their own, with the latter again."""
    found: dict[str, dict[str, Any]] = {}
    for seam in ("credit", "reduce"):
        part: Part = getattr(recipe, seam)
        entry, options = part.component(seam), departing(part, seam)
        if options and entry.bias.startswith("unbiased"):
            said = ", ".join(f"{name}={entry.options[name]}" for name in options)
            found[f"with {seam} {part.name}({said})"] = {seam: entry.build({})}
    return found


def help_steps(recipe: Recipe) -> dict[str, Step]:
    """By KIND/NAME the help of a recipe whose expected first step can be listed."""
    found: dict[str, Step | None] = {}
    for kind, parts in (("guide", recipe.guide), ("source", recipe.source)):
        for part in parts:
            default = Part(name="none") if isinstance(part, SourcePart) else recipe.correction
            theirs = LearnedHelp(
                (part.correction or default).build("correction"),
                measured_losses(part.loss) if part.loss else None,
                part.weight if isinstance(part, SourcePart) else 1.0,
            )
            found[f"{kind}/{part.name}"] = step_of(f"{kind}/{part.name}", part.options, theirs)
    if recipe.teacher is not None:
        own = LearnedHelp(recipe.correction.build("correction"))
        for loss in recipe.loss:
            found[f"loss/{loss.name}"] = step_of(f"loss/{loss.name}", loss.options, own)
    return {part: step for part, step in found.items() if step is not None}


def _with_help(recipe: Recipe, found: Mapping[str, ProcessBias]) -> dict[str, ProcessBias]:
    """Beside what the recipe does without its help, what it does with each; where that is not known, it says so."""
    parts, size = composition(recipe), recipe.rollout.group_size
    helped: dict[str, Mapping[str, HelpBias]] = {}
    told = dict(found)
    for part, step in help_steps(recipe).items():
        said = part.replace("/", " ")
        try:
            helped[part] = help_bias(parts, step, size)
        except RecipeError as error:
            told = {name: unknown(bias, f"{said}: {error.cause}", said) for name, bias in told.items()}
    return {
        name: replace(bias, help={part: tuple(of[name]) for part, of in helped.items() if name in of})
        for name, bias in told.items()
    }


def _parts(recipe: Recipe) -> dict[str, Any]:
    """All of a recipe that the bias depends on."""
    single = ("credit", "correction", "filter", "reduce", "teacher")
    parts: dict[str, Part | list[Any] | int | str] = {seam: plain(getattr(recipe, seam)) for seam in single}
    parts |= {seam: [plain(part) for part in getattr(recipe, seam)] for seam in SEVERAL}
    strategy, size = plain(recipe.rollout.strategy), recipe.rollout.group_size
    refilled = recipe.rollout.refill is not None
    return {**parts, "strategy": strategy, "group_size": size, "refilled": refilled}
