"""The library bm25s, imported so that it takes nothing from the GPU.

On import it computes something with JAX where that is installed, to find out whether it may use it; JAX then takes three quarters of the GPU's
memory (seen on an H200: 105 GB) for as long as the process lives, which is the trainer's. We search with NumPy, so JAX is hidden from it.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from types import ModuleType

    import bm25s


@functools.cache  # it takes a second to import, so where it is needed
def keyword_engine() -> type[bm25s.BM25]:
    """The class of the library's BM25 indices."""
    if "bm25s" not in sys.modules:
        # Hiding a module that others have imported already would be seen by them; a part that is imported by name would not.
        hidden = "jax.lax" if "jax" in sys.modules else "jax"
        found = sys.modules.get(hidden)
        sys.modules[hidden] = cast("ModuleType", None)  # Python's way to say that there is none
        try:
            import bm25s  # noqa: F401
        finally:
            if found is None:
                del sys.modules[hidden]
            else:
                sys.modules[hidden] = found
    from bm25s import BM25

    return BM25
