"""Engines by name. One that is registered can sample in a run, and play as the policy ``NAME:MODEL``.

A new engine is one file: a class under ``@component("engine", NAME, requires=…)`` whose first parameter is the model
(a folder or a Hugging Face id). Its keyword-only parameters are what ``engine.options`` of a recipe may set; those of
:data:`COMMON` every engine takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from turnwise.agents.engines.memory import EngineBytes, EngineLoad
from turnwise.errors import MissingDependencyError
from turnwise.extras import how_to_get
from turnwise.registry import get_component

COMMON = ("device", "context_length", "max_sequences")
"""Options that the run itself decides: where the engine computes, and how much it holds."""
OTHER_ENGINE = "or sample with torch: --set engine.kind=torch, which is slower."


def check_installed(name: str) -> None:
    """Refuse an engine whose libraries are not installed.

    Raises:
        NotFoundError: there is no such engine.
        MissingDependencyError: with the library that is missing.
    """
    for module in get_component("engine", name).lacking:
        raise MissingDependencyError(
            f"The recipe samples with the engine {name!r} (engine.kind), and {module} is not installed.",
            f"{how_to_get(module)}, {OTHER_ENGINE}",
        )


def check_free(name: str, options: Mapping[str, Any], run: str) -> None:
    """Refuse a run whose engine says beforehand that it cannot have it, by a static method ``check(run, **options)``.

    Raises:
        EngineError: it is another run's, or not there.
    """
    check = getattr(get_component("engine", name).target, "check", None)
    if check is not None:
        check(run, **options)


def check_use(
    name: str, options: Mapping[str, Any], *, device: str, in_flight: bool, elsewhere: bool, rank: int
) -> None:
    """Refuse options that the engine cannot have where a run uses it, by a static method ``check_use(options, device=…, …)``.

    Args:
        name: of the engine.
        options: its own.
        device: of the run.
        in_flight: weights change while it samples.
        elsewhere: it is in another process than the learner.
        rank: of the adapters that are trained; 0: none are.

    Raises:
        EngineError: with the reason.
    """
    check = getattr(get_component("engine", name).target, "check_use", None)
    if check is not None:
        check(options, device=device, in_flight=in_flight, elsewhere=elsewhere, rank=rank)


def check_model(name: str, config: Any, device: str) -> None:
    """Refuse a model whose weights the engine cannot be given in training, by a static method ``check_model(config, device)``.

    Raises:
        EngineError: with the reason.
    """
    check = getattr(get_component("engine", name).target, "check_model", None)
    if check is not None:
        check(config, device)


def check_names(name: str, published: Callable[[], frozenset[str]], model: str) -> None:
    """Refuse weights whose names the engine does not know, by a static method ``check_names(published, model)``.

    Raises:
        EngineError: the model's own files name them otherwise.
    """
    check = getattr(get_component("engine", name).target, "check_names", None)
    if check is not None:
        check(published(), model)


def engine_bytes(name: str, load: EngineLoad, options: Mapping[str, Any]) -> EngineBytes | None:
    """Return what an engine would take, by its static method ``memory(load, options)``; None where it does not say.

    Raises:
        NotFoundError: there is no such engine.
        RecipeError: an option is no number.
    """
    asked = getattr(get_component("engine", name).target, "memory", None)
    return None if asked is None else asked(load, options)


def open_engine(name: str, model: str, **options: Any) -> Any:
    """The engine of this name on a model; ``options`` are its own and those of :data:`COMMON`.

    Raises:
        NotFoundError: there is no such engine.
        RecipeError: an option is unknown or of the wrong type.
        MissingDependencyError: a library or a device that it needs is not there.
    """
    return get_component("engine", name).build(options)(model)


def changes_in_flight(engine: Any) -> bool:
    """Return whether an engine's weights can be replaced under requests in flight: its ``load_weights`` takes ``kv``."""
    given = inspect.signature(engine.load_weights).parameters.values()
    return any(one.name == "kv" or one.kind is one.VAR_KEYWORD for one in given)
