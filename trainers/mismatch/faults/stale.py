"""An engine with other weights, one of those that the user names."""

from __future__ import annotations

from collections.abc import Iterator

from turnwise.trainers.mismatch.case import MismatchCase
from turnwise.trainers.mismatch.core import Explanation, detects

TOKENS = 600
"""So many tokens are scored with each other model."""


@detects(cost=1, numbers=True)
def stale(case: MismatchCase) -> Iterator[Explanation]:
    """Score with each other model."""
    index_M = case.some(case.looked_N, TOKENS)
    for name, load in case.models.also.items():
        yield Explanation(
            "stale_weights",
            f"the engine ran {name}",
            case.by_another(load(), index_M),
            data={"weights": name},
        )
