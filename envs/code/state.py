"""State of an episode."""

from __future__ import annotations

from typing import NamedTuple


class CodeState(NamedTuple):
    """The draft and what is known of it."""

    task: str
    draft: str = ""
    passed: int = 0  # visible tests that the draft passes
    compiled: bool = False  # whether any draft so far compiled
    submitted: bool = False
