"""The form of a log with a planted fault, which benchmarks/mismatch.py asks `turnwise mismatch` about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

FAULTS = (
    "none",
    "stale_weights",
    "missing_adapter",
    "retokenized_history",
    "truncated_sampling",
    "temperature",
    "wrong_template",
    "wrong_end_token",
    "quantized_engine",
)
"""The names of the page docs/how-to/mismatch.md."""
MOST_ROWS = 64


class PlantedLog(NamedTuple):
    """A log whose fault is known.

    Attributes:
        rows: at most 64 objects of the form that docs/how-to/mismatch.md describes.
        model: the model that should have sampled them: the one that was given, or one with an adapter merged into it.
        without_adapter: the same model without its adapter, where it has one.
        also: other models that the user knows of, by name, such as older checkpoints; the one that sampled may be among them, or not.
        begins: row, turn and token of the turn at which the fault begins, each from 0; None where there is no fault.
        drawn: kind, size and place of the fault as they were drawn, in plain values.
    """

    rows: Sequence[Mapping[str, Any]]
    model: Any
    without_adapter: Any = None
    also: Mapping[str, Any] = {}
    begins: tuple[int, int, int] | None = None
    drawn: Mapping[str, Any] = {}


Planter: TypeAlias = Callable[[Any, Any, int, str], PlantedLog]
"""Model, tokeniser, seed and the name of a fault → a log with it. The model that is given is left as it is."""
