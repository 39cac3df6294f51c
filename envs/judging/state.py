"""The state of a question."""

from __future__ import annotations

from typing import NamedTuple


class JudgingState(NamedTuple):
    """A task, and whether it was answered."""

    task: str
    answered: bool = False
