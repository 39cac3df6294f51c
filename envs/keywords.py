"""The library bm25s, imported so that it takes nothing from the GPU.

On import it computes something with JAX where that is installed, to find out whether it may use it; JAX then takes three quarters of the GPU's
memory (seen on an H200: 105 GB) for as long as the process lives, which is the trainer's. We search with NumPy, so JAX is hidden from it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType

    import bm25s

_importing = threading.Lock()


def keyword_engine() -> type[bm25s.BM25]:  # imported where it is needed, because that takes a second
    """The class of the library's BM25 indices."""
    with _importing, contextlib.nullcontext() if "bm25s" in sys.modules else _jax_hidden():
        from bm25s import BM25
    return BM25


@contextlib.contextmanager
def _jax_hidden() -> Iterator[None]:
    """JAX cannot be imported by this thread; where it was imported already, its part that bm25s wants cannot by any, for a moment."""
    if sys.modules.get("jax.lax") is not None:
        found = sys.modules["jax.lax"]
        sys.modules["jax.lax"] = cast("ModuleType", None)  # Python's way to say that there is none
        try:
            yield
        finally:
            sys.modules["jax.lax"] = found
    else:
        hidden = _Hidden(threading.get_ident())
        sys.meta_path.insert(0, hidden)
        try:
            yield
        finally:
            sys.meta_path.remove(hidden)


class _Hidden:
    """Finds no JAX for one thread; asked before all other finders."""

    def __init__(self, thread: int) -> None:
        self._thread = thread

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """As finders do; None: others may look."""
        if name in ("jax", "jax.lax") and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"{name} is hidden from bm25s", name=name)
