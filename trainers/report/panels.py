"""Names and drawing of metrics in reports, and a test for those that say nothing because they never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Panel(NamedTuple):
    """Title of a metric, and whether it is a share."""

    title: str
    share: bool = False  # between 0 and 1


PANELS = {
    "reward": Panel("Reward per episode"),
    "success": Panel("Training success", share=True),
    "success_unguided": Panel("Training success without help", share=True),
    "entropy": Panel("Entropy, nats per token"),
    "kl": Panel("KL to the reference"),
    "clip_low": Panel("Tokens held back from becoming less likely", share=True),
    "clip_high": Panel("Tokens held back from becoming more likely", share=True),
    "tokens_per_second": Panel("Tokens per second"),
    "seconds": Panel("Seconds per update"),
    "loss": Panel("Loss"),
    "grad_norm": Panel("Gradient norm"),
    "turns": Panel("Turns per episode"),
}


def is_constant(values: Sequence[float]) -> bool:
    """Say whether a metric had one value throughout, so that a curve of it shows nothing.

    >>> is_constant([0.0, 0.0]), is_constant([1.0]), is_constant([1.0, 1.5]), is_constant([1.0, 1.0 + 1e-13])
    (True, True, False, True)
    """
    largest = max(map(abs, values), default=0.0)
    return not values or max(values) - min(values) <= 1e-9 * largest
