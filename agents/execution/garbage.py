"""Python's search for cycles while episodes are played: it walks over the tokens of all prompts in flight, one by one."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator

SELDOM = 20_000
"""Objects that are made between two searches; Python's own 700 are those of some 30 turns."""


@contextlib.contextmanager
def seldom_searched() -> Generator[None]:
    """Let Python search for cycles less often; what is in none is freed at once as ever."""
    before = gc.get_threshold()
    if not 0 < before[0] < SELDOM:  # somebody chose otherwise, or other episodes are being played
        yield
        return
    gc.set_threshold(SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
