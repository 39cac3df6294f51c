"""Whether the choices of a recipe exist and go together."""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from turnwise.agents.policies.registry import check_spec
from turnwise.agents.policies.scripted import scripted
from turnwise.agents.policies.small import HEAD_DIMS
from turnwise.agents.rollout import Request
from turnwise.agents.table import check_opponents
from turnwise.envs.registry import env_class, get_suite
from turnwise.errors import NotFoundError, RecipeError, TurnwiseError
from turnwise.tasks.core import Suite, Task
from turnwise.trainers.measure import MEASURED
from turnwise.trainers.play import DryPlayer, Strategy
from turnwise.trainers.registry import Component, components
from turnwise.trainers.schema import Recipe

SINGLE = ("judge", "reward", "filter", "credit", "correction", "reduce")
"""Seams that a recipe fills with one part."""
ENGINES = {
    "vllm": ("turnwise.agents.policies.vllm", "VllmEngine"),
    "torch": ("turnwise.agents.policies.torch", "TorchEngine"),
}


def check_fit(recipe: Recipe) -> None:
    """Refuse what does not exist or does not go together.

    Raises:
        TurnwiseError: with the nearest name, or the remedy.
    """
    suite = get_suite(recipe.suite)
    if recipe.rollout.env_options:
        _check_options("environment", env_class(suite.env), recipe.rollout.env_options)
    if recipe.warm_start is not None:
        scripted(recipe.warm_start.demonstrator)
    for key, opponents in (
        ("rollout.opponents", recipe.rollout.opponents),
        ("evaluate.opponents", recipe.evaluate.opponents),
    ):
        _check_opponents(suite, key, opponents)
    _check_parts(recipe)
    _check_model(recipe)
    if recipe.engine.options:
        module, name = ENGINES[recipe.engine.kind]
        engine = getattr(importlib.import_module(module), name)
        _check_options(f"engine {recipe.engine.kind!r}", engine, recipe.engine.options)


def _check_opponents(suite: Suite, key: str, opponents: Mapping[str, str]) -> None:
    try:
        check_opponents(suite, opponents)
        for spec in opponents.values():
            check_spec(spec)
    except TurnwiseError as error:
        raise RecipeError(f"{key}: {error.cause}", error.remedy) from None


def _check_parts(recipe: Recipe) -> None:
    for seam in SINGLE:
        getattr(recipe, seam).build(seam)
    _check_strategy(recipe)
    for part in recipe.loss:
        part.build("loss")
    if not recipe.loss:
        raise RecipeError("The recipe has no loss.", "Name at least one (`turnwise list loss`).")
    strategy = recipe.rollout.strategy.component("strategy")
    judge = recipe.judge.component("judge")
    missing = recipe.needs - MEASURED - {*strategy.gives, *judge.gives}
    for seam, given, key in (("strategy", strategy, "rollout.strategy"), ("judge", judge, "judge")):
        for other in components(seam):
            if missing & {*other.gives}:
                raise RecipeError(
                    f"Parts of this recipe need {', '.join(sorted(missing))}, which {seam} {given.name!r} does not give.",
                    f"Set {key}: {other.name}.",
                )
    if judge.gives and not recipe.needs & {*judge.gives}:
        raise RecipeError(
            f"judge {judge.name!r} can have no effect: no part needs {' or '.join(judge.gives)}.",
            f"Use credit: {_user_of(judge)}, or judge: none.",
        )
    if missing:
        raise RecipeError(
            f"Parts of this recipe need {', '.join(sorted(missing))}, which this trainer does not measure.",
            f"It measures {', '.join(sorted(MEASURED))}; choose other parts.",
        )


def _check_strategy(recipe: Recipe) -> None:
    """Try the strategy on groups of this size whose episodes end at once: it refuses what it cannot split."""
    entry = recipe.rollout.strategy.component("strategy")
    strategy: Strategy = recipe.rollout.strategy.build("strategy")
    requests = [Request(Task("dry", "?", {}), i) for i in range(recipe.rollout.group_size)]
    trial = strategy(DryPlayer(recipe.reward.build("reward")), [requests])
    with contextlib.suppress(StopIteration):  # it waits for nothing, so it ends in one step
        trial.__await__().send(None)
    if entry.only_measures and not recipe.needs & {*entry.gives}:
        raise RecipeError(
            f"rollout.strategy {entry.name!r} can have no effect: no part needs {' or '.join(entry.gives)}.",
            f"Use credit: {_user_of(entry)}, or rollout.strategy: chain.",
        )


def _user_of(source: Component) -> str:
    """A credit rule that looks at what a strategy or a judge measures."""
    users = [c for c in components("credit") if {*c.needs} & {*source.gives}]
    return min(users, key=lambda c: (c.name != source.name, len(c.needs), c.name)).name


def _check_model(recipe: Recipe) -> None:
    model, scratch = recipe.model, recipe.model.scratch
    if (model.path is None) == (scratch is None):
        raise RecipeError(
            "A model is either loaded or made.", "Give exactly one of model.path and model.scratch."
        )
    if scratch is not None:
        if scratch.width % scratch.heads or scratch.width // scratch.heads not in HEAD_DIMS:
            raise RecipeError(
                f"model.scratch: width {scratch.width} cannot be cut into {scratch.heads} heads.",
                f"Choose width = heads × one of {', '.join(map(str, HEAD_DIMS))}.",
            )
        if scratch.init == "induction" and (scratch.layers < 2 or scratch.heads < 4):
            raise RecipeError(
                "model.scratch: init: induction needs at least 2 layers and 4 heads.",
                "Give it them, or set init: random.",
            )
        context = recipe.engine.context_length or scratch.context
        if context > scratch.context:
            raise RecipeError(
                f"engine.context_length {context} is beyond the model's {scratch.context}.",
                "Raise model.scratch.context, or lower it.",
            )
        if recipe.sampling.max_tokens >= context:
            raise RecipeError(
                f"sampling.max_tokens {recipe.sampling.max_tokens} leaves no room in a context of {context}.",
                "Lower it, or raise model.scratch.context.",
            )


def _check_options(what: str, make: Callable[..., Any], options: dict[str, Any]) -> None:
    parameters = inspect.signature(make).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for name in options:
        if name not in known:
            error = NotFoundError(f"option of the {what} called", name, known)
            raise RecipeError(error.cause, error.remedy)
