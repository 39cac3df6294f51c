"""The engine that a run trains with: one whose weights can be replaced while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from turnwise.agents.core import Engine, Kv
from turnwise.agents.engines.registry import changes_in_flight
from turnwise.agents.remote.adapters import AdaptedWeights
from turnwise.errors import EngineError


class TrainableEngine(Engine, Protocol):
    """An engine whose weights can be replaced while the process runs.

    ``kv`` is given only where weights change under requests in flight (``scale.staleness``); an engine that cannot do
    that need not take it.
    """

    dtype: str

    def load_weights(
        self, weights: Iterable[tuple[str, Tensor]], version: int, *, kv: Kv | None = None
    ) -> None: ...

    def score(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]: ...


@runtime_checkable
class TakesAdapters(Protocol):
    """An engine that keeps a model's weights and can be sent the adapters alone."""

    def load_adapters(self, weights: AdaptedWeights, version: int, *, kv: Kv | None = None) -> None: ...


@runtime_checkable
class Sleeps(Protocol):
    """An engine that can leave its memory to the learner, until it is given weights."""

    def sleep(self) -> None: ...


def check_trainable(engine: Any, name: str, *, in_flight: bool) -> TrainableEngine:
    """Return the engine, if a run can train with it.

    Args:
        engine: one that can at least sample.
        name: by which it is known.
        in_flight: whether its weights will change while it samples.

    Raises:
        EngineError: it lacks what a run needs.
    """
    missing = [
        attribute for attribute in ("dtype", "load_weights", "score") if not hasattr(engine, attribute)
    ]
    if missing:
        raise EngineError(
            f"The engine {name} can sample and not be trained: it has no {' and no '.join(missing)}.",
            "docs/extending/engine.md says what a run needs of an engine.",
        )
    if in_flight and not changes_in_flight(engine):
        raise EngineError(
            f"The engine {name} cannot change its weights under requests in flight: its load_weights takes no kv.",
            "Set scale.staleness to 0, or choose an engine that can: torch, vllm or remote.",
        )
    return engine
