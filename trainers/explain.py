"""Say what a recipe optimises: its objective as a formula, and each part in words."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnwise.trainers.recipe import load_recipe
from turnwise.trainers.schema import Part, Recipe


def explain(source: str | Path, overrides: Mapping[str, Any] | None = None) -> str:
    """What the recipe of this name or path optimises.

    Raises:
        RecipeError: the recipe is not right.
    """
    return explain_recipe(load_recipe(source, overrides))


def explain_recipe(recipe: Recipe) -> str:
    """The objective of a recipe, in a formula and in words."""
    lines = [recipe.about.strip(), ""] if recipe.about else []
    lines += ["Objective (descended):", f"  L(θ) = {_formula(recipe)}", "", "where"]
    lines += [f"  {line}" for line in _where(recipe)]
    lines += ["", "Parts"]
    lines += [line for seam, part in _parts(recipe) for line in _part(seam, part)]
    lines += ["", "Schedule", *(f"  {line}" for line in _schedule(recipe))]
    return "\n".join(lines) + "\n"


def _formula(recipe: Recipe) -> str:
    terms = []
    for part in recipe.loss:
        weight = "" if part.weight == 1 else f"{part.weight:g}·"
        terms.append(f"{weight}Σ_t w_t·ℓ_{part.name}(t)")
    if "value" in recipe.needs:
        terms.append("0.5·mean_k (V(s_k) − G_k)²")
    return " + ".join(terms)


def _where(recipe: Recipe) -> list[str]:
    correction = "" if recipe.correction.name == "none" else f" × {recipe.correction.name}(t)"
    return [
        "t runs over the tokens that the policy sampled; no other token carries loss,",
        f"w_t is the weight of `{recipe.reduce.name}`,",
        f"A_t = A_(turn of t){correction}, and A_(turn) is the credit of `{recipe.credit.name}`.",
    ]


def _parts(recipe: Recipe) -> list[tuple[str, Part]]:
    parts = [("strategy", recipe.rollout.strategy), ("reward", recipe.reward), ("filter", recipe.filter), ("credit", recipe.credit)]
    parts += [("correction", recipe.correction), *(("loss", part) for part in recipe.loss)]
    return [*parts, ("reduce", recipe.reduce)]


def _part(seam: str, part: Part) -> list[str]:
    entry = part.component(seam)
    options = {**entry.options, **part.options}
    shown = ", ".join(f"{name}={value}" for name, value in options.items())
    paper = f"  [arXiv {entry.paper}]" if entry.paper else ""
    lines = [f"  {seam:<10} {entry.name}({shown}){paper}"]
    body = inspect.cleandoc(entry.function.__doc__ or "").partition("Worked by hand")[0].partition(">>>")[0]
    lines += [f"             {line}".rstrip() for line in body.strip().splitlines()]
    if entry.bias:
        lines.append(f"             Estimator of the policy gradient: {entry.bias}.")
    return lines


def _schedule(recipe: Recipe) -> list[str]:
    rollout, optimizer = recipe.rollout, recipe.optimizer
    lines = []
    if recipe.warm_start is not None:
        lines.append(
            f"warm start: cross-entropy on {recipe.warm_start.episodes} episodes of "
            f"scripted:{recipe.warm_start.demonstrator} (observations weigh {recipe.warm_start.observation_weight:g})"
        )
    steps = optimizer.epochs * optimizer.minibatches
    lines.append(
        f"then {recipe.updates} updates on {recipe.suite}: {rollout.groups} tasks × {rollout.group_size} episodes, "
        f"{steps} AdamW step{'s' if steps > 1 else ''} each at {optimizer.learning_rate:g}"
    )
    lines.append(
        f"every {recipe.evaluate.every} updates {recipe.evaluate.dev} dev tasks choose the checkpoint; "
        f"{recipe.evaluate.test} test tasks judge it"
    )
    return lines
