"""Memory that engines say they take, before one is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from turnwise.errors import RecipeError


class EngineLoad(NamedTuple):
    """A model and how it is asked, as far as an engine's memory depends on it.

    Attributes:
        weights: of the model.
        keys: numbers that are kept of a token: keys and values of all layers.
        context: tokens of a prompt with its answer.
        sequences: that are decoded at a time.
        cuda: on a GPU.
        card: bytes of the GPU; 0: not known.
    """

    weights: int
    keys: int
    context: int
    sequences: int
    cuda: bool
    card: float = 0.0


class EngineBytes(NamedTuple):
    """Bytes of an engine, on each card that it has.

    Attributes:
        weights: a copy of the model's.
        kv: keys and values of what it decodes.
        how: how much that is, in words.
        rests: it lets go of keys and values while the learner works.
        rests_whole: of its weights too.
    """

    weights: float
    kv: float
    how: str
    rests: bool = False
    rests_whole: bool = False


def number_of(options: Mapping[str, Any], name: str, usual: float) -> float:
    """Read a number among an engine's options.

    Raises:
        RecipeError: it is none, or not above 0.
    """
    given = options.get(name) or usual
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < float("inf"):
        raise RecipeError(
            f"engine.options.{name} is {str(given)[:60]!r}, and no number from 0 on.", "Give a number."
        )
    return float(given)


def bytes_of_number(options: Mapping[str, Any], *, cuda: bool) -> int:
    """Bytes of a number in the type that an engine computes in."""
    dtype = str(options.get("dtype", "auto"))
    return {"float32": 4, "auto": 2 if cuda else 4}.get(dtype, 2)


def most_kv(load: EngineLoad, number: int) -> float:
    """Bytes of keys and values where every sequence is as long as the context."""
    return float(number * load.keys * load.context * load.sequences)
