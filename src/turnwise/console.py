"""Colours, tables and panels for the terminal, into which foreign text cannot write its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from turnwise.secrets import redact
from turnwise.terminal import Guarded, visible


class SafeConsole(Console):
    """A rich console on which every text is plain: no markup, no emoji codes, no control characters.

    Styles are given as objects (``Text(…, style)``, ``print(…, style=…)``), so that nothing has to be escaped.
    """

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # rich would end the process, with 1: `turnwise train --help | head` is no failure

    def __init__(self, *, stderr: bool = False, file: IO[str] | None = None, **options: Any) -> None:
        super().__init__(stderr=stderr, file=file, highlight=False, markup=False, emoji=False, **options)

    @property
    def file(self) -> IO[str]:
        file: Any = Console.file.__get__(self)
        return file.raw if isinstance(file, Guarded) else file

    @file.setter
    def file(self, new_file: IO[str]) -> None:
        self._file = new_file

    def render_str(self, text: str, **options: Any) -> Text:
        shown = visible(redact(text))  # before it is laid out, so that widths are right
        return super().render_str(shown, **options)

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        return super()._render_buffer(
            part if part.control else part._replace(text=visible(part.text)) for part in buffer
        )
