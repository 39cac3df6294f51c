"""Weights & Biases."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnwise.extras import needing
from turnwise.registry import component


@component("sink", "wandb")
class WeightsAndBiases:
    """Weights & Biases: in the run's folder ``wandb/``, from which ``wandb sync`` sends it, or at once with ``mode: online``.

    A run that is resumed goes on under the same id; figures of updates that an earlier process wrote already are left
    as they are, since steps only grow there.

    Args:
        folder: the run's.
        update: the newest one that counts.
        project: under which the run is found.
        mode: ``offline`` keeps it on this machine, ``online`` sends it (log in with ``wandb login`` first).
    """

    def __init__(
        self, folder: Path, update: int, *, project: str = "turnwise", mode: str = "offline"
    ) -> None:
        with needing("the sink wandb"):
            import wandb

        self._run: Any = wandb.init(
            project=project,
            name=folder.name,
            id=_known_id(folder),
            dir=str(folder),
            mode=mode,  # pyright: ignore[reportArgumentType]
            resume="allow" if mode == "online" else None,
            settings=wandb.Settings(silent=True, console="off", disable_git=True, x_disable_stats=True),
        )

    def write(self, update: int, metrics: Mapping[str, Any]) -> None:
        """Show an update's numbers."""
        self._run.log(numbers(metrics), step=update)

    def close(self) -> None:
        """Write out what is buffered."""
        self._run.finish()


def numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics that can be drawn.

    >>> numbers({"reward": 0.5, "interval": [0.1, 0.9], "vacuous": "every group was alike", "interrupted": True})
    {'reward': 0.5}
    """
    return {
        name: value
        for name, value in metrics.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def _known_id(folder: Path) -> str:
    """The same for every process of a run, and another for another run of the same name."""
    return f"{folder.name}-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]}"
