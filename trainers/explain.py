"""Say what a recipe optimises: its objective as a formula, and each part in words."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnwise.trainers.recipe import load_recipe
from turnwise.trainers.schema import Part, Recipe

WIDTH = 110


def explain(source: str | Path, overrides: Mapping[str, Any] | None = None) -> str:
    """What the recipe of this name or path optimises.

    Raises:
        RecipeError: the recipe is not right.
    """
    return explain_recipe(load_recipe(source, overrides))


def explain_recipe(recipe: Recipe) -> str:
    """The objective of a recipe, in a formula and in words."""
    lines = [*textwrap.wrap(recipe.about, WIDTH), ""] if recipe.about else []
    lines += ["Objective (descended)", f"  L(θ) = {_formula(recipe)}", ""]
    lines += [f"  {symbol:<6} {meaning}" for symbol, meaning in _symbols(recipe)]
    lines += ["", "Run", *(f"  {line}" for line in _schedule(recipe))]
    lines += ["", "Parts, in the order in which a batch passes them"]
    lines += [line for seam, part in _parts(recipe) for line in ("", *_part(seam, part))]
    return "\n".join(lines) + "\n"


def _formula(recipe: Recipe) -> str:
    terms = [(part.weight, f"ℓ_{part.name}(t)") for part in recipe.loss]
    first, *others = (f"{'−' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):g}·'}{x}" for w, x in terms)
    summed = " ".join([first.removeprefix("+ "), *others])
    heads = [
        ("value", "mean_k (V(s_k) − G_k)²"),
        ("token_value", "mean_t (V(s_t) − G_t)²"),
        ("progress", "mean (Σ_k ĉ_k − R)²"),
    ]
    weight = f"{recipe.optimizer.value_weight:g}"
    fitted = "".join(f" + {weight}·{term}" for need, term in heads if need in recipe.needs)
    return f"Σ_t w_t·[{summed}]{fitted}"


def _symbols(recipe: Recipe) -> list[tuple[str, str]]:
    start = "after the warm start" if recipe.warm_start else "it is trained from"
    old = (
        "the policy that played this update" if recipe.steps > 1 else "π itself: there is one step per update"
    )
    symbols = [
        ("t", "a token that the policy sampled; no other token carries loss"),
        ("k", "a turn: one message of the policy and what the environment answered"),
        ("π", f"the policy, at temperature {recipe.sampling.temperature:g}; π_old: {old}"),
        ("w_t", f"weight of the reducer `{recipe.reduce.name}`; its denominator is the whole minibatch's"),
        (
            "A_t",
            f"the advantage in the losses: c_t·A_k, where credit `{recipe.credit.name}` gives turn k of t its A_k",
        ),
        ("c_t", f"the correction `{recipe.correction.name}` of the gap between engine and trainer"),
    ]
    if "reference" in recipe.needs:
        symbols.append(("π_ref", f"the model {start}, frozen"))
    if "value" in recipe.needs:
        symbols.append(
            ("V, G", "a learned value of the state before turn k, and what it is fitted to: A_k + V(s_k)")
        )
    if "token_value" in recipe.needs:
        symbols.append(
            ("V, G", "a learned value of the text before token t, and what it is fitted to: A_t + V")
        )
    if "progress" in recipe.needs:
        symbols.append(("ĉ, R", "a learned estimate of turn k's part in the return, and the return"))
    if recipe.needs & {"implicit", "token_implicit"}:
        symbols.append(
            ("π_φ", "a copy of the policy that learns to tell success from failure: the reward model")
        )
    return symbols


def _parts(recipe: Recipe) -> list[tuple[str, Part]]:
    first = [("strategy", recipe.rollout.strategy)]
    single = [(seam, getattr(recipe, seam)) for seam in ("judge", "reward", "filter", "credit", "correction")]
    return [*first, *single, *(("loss", part) for part in recipe.loss), ("reduce", recipe.reduce)]


def _part(seam: str, part: Part) -> list[str]:
    entry = part.component(seam)
    options = {**entry.options, **part.options}
    shown = ", ".join(f"{name}={value}" for name, value in options.items())
    paper = f"  [arXiv {entry.paper}]" if re.fullmatch(r"\d{4}\.\d{4,5}", entry.paper) else ""
    lines = [f"  {seam}: {entry.name}({shown}){paper}"]
    said = inspect.cleandoc(entry.function.__doc__ or "").partition("Worked by hand")[0].partition(">>>")[0]
    lines += [f"      {line}".rstrip() for line in said.strip().replace("``", "`").splitlines()]
    if entry.bias:
        lines.append(f"      As an estimate of the policy gradient: {entry.bias}.")
    return lines


def _schedule(recipe: Recipe) -> list[str]:
    rollout, optimizer, warm = recipe.rollout, recipe.optimizer, recipe.warm_start
    made = recipe.model.scratch
    model = f"a model from scratch, {made.layers} layers of {made.width}" if made else recipe.model.path
    adapters = f", by adapters of rank {recipe.model.lora.rank}" if recipe.model.lora else ""
    lines = [f"model: {model}{adapters}; {recipe.engine.kind} samples from it"]
    if warm is not None:
        lines.append(
            f"warm start: cross-entropy on {warm.episodes} episodes of scripted:{warm.demonstrator} "
            f"(observations weigh {warm.observation_weight:g})"
        )
    played = f"{rollout.groups} tasks × {rollout.group_size} episodes"
    steps = f"{recipe.steps} AdamW step{'s' if recipe.steps > 1 else ''} at rate {optimizer.learning_rate:g}"
    lines.append(f"then {recipe.updates} updates on {recipe.suite}, each of {played} and {steps}")
    looks = recipe.evaluate
    lines.append(f"every {looks.every} updates {looks.dev} dev tasks choose the checkpoint")
    lines.append(f"{looks.test} test tasks judge it, before and after, sampled and greedily")
    return lines
