"""A progress bar on stderr if that is a terminal; otherwise a line now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from turnwise.console import SafeConsole
from turnwise.terminal import Guarded, visible

EVERY_S = 30.0
"""Seconds between two lines where there is no terminal, as in a batch job's log."""


class ProgressLine:
    """Counts ``total`` items, each of which may have figures to show."""

    def __init__(self, title: str, total: int, *, every: float = EVERY_S) -> None:
        self._title, self._total, self._every = title, total, every
        self._done, self._begun = 0, time.monotonic()
        self._said = self._begun
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._bar = Bar(
            *columns,
            console=SafeConsole(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
            redirect_stdout=False,  # rich would obey the escape sequences of what others print
            redirect_stderr=False,
        )
        self._task = self._bar.add_task(title, total=total, figures="")

    def advance(self, **figures: float) -> None:
        shown = " ".join(f"{name} {value:.3f}" for name, value in figures.items())
        self._bar.update(self._task, advance=1, figures=shown)
        self._done += 1
        now = time.monotonic()
        if self._bar.disable and now - self._said >= self._every:
            self._said = now
            said = f"{self._title}: {self._done} of {self._total}, {now - self._begun:.0f} s  {shown}"
            print(visible(said.rstrip()), file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        self._bar.start()
        if not self._bar.disable:
            for stream in _shown_streams():
                stream.above = self._above
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        for stream in _shown_streams():
            stream.settle()

    def _above(self, lines: str) -> None:
        self._bar.console.print(Text(lines), soft_wrap=True)


def _shown_streams() -> list[Guarded]:
    """Those that are guarded and share the terminal with the bar."""
    streams: list[object] = [sys.stdout, sys.stderr]
    return [stream for stream in streams if isinstance(stream, Guarded) and stream.isatty()]
