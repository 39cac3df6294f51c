"""Memory of a GPU under vLLM's tags, in the place of vLLM's allocator, for an engine on a CPU.

Only a worker's three methods stand in (``sleep``, ``discard``, ``wake_up``): what is let go of is not a number until it is taken back, and then
holds what others left there. When which may be called is vLLM's own code (``EngineCore``, ``Executor``), which keeps its rules: a pause
first, nothing in flight, the scheduler on again once all is back. So no GPU has been asked how fast this is, or how much it frees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

ALL = ("weights", "kv_cache")


class CardMemory:
    """The tagged memory of one engine.

    Attributes:
        gone: the tags that are let go of.
        calls: of the worker, in order.
    """

    def __init__(self, engine: Any, patch: pytest.MonkeyPatch) -> None:
        worker = engine._engine.engine_core.engine_core.model_executor.driver_worker.worker
        self._runner = worker.model_runner
        self.gone, self.calls = set[str](), list[str]()
        patch.setattr(worker, "sleep", lambda level=1: self._let_go(ALL, f"sleep {level}"))
        patch.setattr(worker, "discard", lambda tags: self._let_go(tags, f"discard {' '.join(tags)}"))
        patch.setattr(worker, "wake_up", lambda tags=None: self._take(tags or ALL))

    @torch.no_grad()
    def _let_go(self, tags: Sequence[str], call: str) -> None:
        self.calls.append(call)
        self.gone |= set(tags)
        for tensor in self._of(tags):
            tensor.fill_(float("nan"))

    @torch.no_grad()
    def _take(self, tags: Sequence[str]) -> None:
        self.calls.append(f"wake_up {' '.join(tags)}")
        self.gone -= set(tags)
        for tensor in self._of(tags):
            tensor.fill_(0.7)

    def _of(self, tags: Sequence[str]) -> list[Any]:
        weights = [*self._runner.model.parameters()] if "weights" in tags else []
        return weights + ([*self._runner.kv_caches] if "kv_cache" in tags else [])
