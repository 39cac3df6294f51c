"""An engine that ran the base model without its adapter."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, detects
from turnwise.trainers.mismatch.faults.stale import TOKENS


@detects(cost=1, numbers=True)
def adapter(case: MismatchCase) -> Iterator[Explanation]:
    """Score with the base model alone."""
    if case.models.without_adapter is None:
        return
    index_M = case.some(case.looked_N, TOKENS)
    base = case.models.without_adapter()
    yield Explanation(
        "missing_adapter", "the engine ran the base model alone", case.by_another(base, index_M)
    )
