"""Names of metrics in reports, and tests for those that say nothing: they never changed, or are of parts that are not in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from turnwise.plain_yaml import read_yaml

_NO_PART: tuple[Any, ...] = ([], "none", {"name": "none"})  # as a recipe says that it has none


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


def costs_left_out(recipe: str) -> frozenset[str]:
    """Return the names of metrics that only say what it took to pass by a part that a run's frozen recipe leaves out.

    A part that a phase puts in is in use, and so may any be where a phase takes another algorithm.

    >>> sorted(costs_left_out("guide: []\\njudge: none\\ncredit: grpo\\nphases: [{set: {guide: [hint]}}]"))
    ['judge_seconds', 'judge_tokens']
    """
    try:
        data = read_yaml(recipe)
    except (ValueError, yaml.YAMLError, RecursionError):
        return frozenset()
    if not isinstance(data, dict):
        return frozenset()
    phases = data.get("phases")
    sets = [_set_in(phase) for phase in phases] if isinstance(phases, list) else []
    changed = {str(key).partition(".")[0] for given in sets for key in given}
    if "algorithm" in changed:
        return frozenset()
    left_out = {str(key) for key, part in data.items() if part in _NO_PART} - changed
    return frozenset(f"{key}_{cost}" for key in left_out for cost in ("seconds", "tokens"))


def _set_in(phase: Any) -> Mapping[Any, Any]:
    match phase:
        case {"set": dict(given)}:
            return given
        case _:
            return {}
