"""TensorBoard's event files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turnwise.registry import component


@component("sink", "tensorboard")
class TensorBoard:
    """Event files in the run's folder ``tensorboard/``, for TensorBoard.

    Args:
        folder: the run's.
        update: the newest one that counts: what an earlier process wrote after it is hidden.
    """

    def __init__(self, folder: Path, update: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=update + 1 if update else None)

    def write(self, update: int, metrics: Mapping[str, Any]) -> None:
        """Show an update's numbers."""
        for name, value in metrics.items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(name, value, update)

    def close(self) -> None:
        """Write out what is buffered."""
        self._writer.close()
