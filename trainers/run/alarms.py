"""Warnings of a run about an update whose figures cannot be right, though nothing failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnwise.trainers.recipe.schema import Recipe

FAR = 0.1
"""Largest distance of the mean correction from 1 where the policy that learns has sampled every token itself."""


def alarm(recipe: Recipe, metrics: Mapping[str, Any]) -> str:
    """Return what is wrong with an update, in a sentence; "" where nothing is.

    On its own tokens the engine's probabilities and the learner's agree but for rounding, and the correction is 1. Where it is far
    from that they are of two models: the signal is thrown away, or given to the wrong tokens.
    """
    weight = metrics.get("correction")
    if weight is None or recipe.scale.staleness or recipe.sources or abs(weight - 1) <= FAR:
        return ""
    return (
        f"alarm: the correction of this update is {weight:.3g} on average, and 1 is right where the policy sampled every token "
        "itself: the engine's probabilities are not the learner's. Stop, and compare the two on this model (canary_gap, engine.kind: torch)"
    )
