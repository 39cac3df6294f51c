"""A process for each side of a benchmark."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Self, TypeVar

from turnwise.agents.remote.orphan import end_with_parent

T = TypeVar("T")


class Apart:
    """A process of its own for one side: libraries change threads and allocators of the process that they are loaded into."""

    def __enter__(self) -> Self:
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=end_with_parent)
        return self

    def call(self, work: Callable[..., T], *arguments: Any) -> T:
        """The result of some work there."""
        return self._pool.submit(work, *arguments).result()

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()
