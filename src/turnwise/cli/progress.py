"""A progress bar on stderr, where somebody watches; silence where nobody does."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Progress:
    """Counts ``total`` things of which each may bring figures to show."""

    def __init__(self, title: str, total: int) -> None:
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Bar(
            *columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True
        )
        self._task = self._bar.add_task(title, total=total, figures="")

    def advance(self, **figures: float) -> None:
        shown = " ".join(f"{name} {value:.3f}" for name, value in figures.items())
        self._bar.update(self._task, advance=1, figures=shown)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
