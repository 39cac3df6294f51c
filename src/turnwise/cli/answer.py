"""What a verb answers, and how it reaches the terminal or another program."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console

Json: TypeAlias = Any


@dataclass(frozen=True)
class Answer:
    """A verb's result: the JSON value, how a person sees it, and the exit code."""

    value: Json
    show: Callable[[Console], None]
    code: int = 0


class Problem(NamedTuple):
    """What went wrong: the kind of error, its cause, and what to do about it."""

    error: str
    cause: str
    remedy: str


class Output:
    """Standard output, kept for the answer alone where JSON is asked for.

    Libraries print (vllm does, from C++ too), so file descriptor 1 itself leads to stderr meanwhile.
    """

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._saved = -1

    def __enter__(self) -> Self:
        if self._as_json:
            sys.stdout.flush()
            self._saved = os.dup(1)
            os.dup2(2, 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._as_json:
            sys.stdout.flush()
            os.dup2(self._saved, 1)
            os.close(self._saved)

    def fileno(self) -> int:
        return self._saved if self._as_json else 1

    def show(self, answer: Answer) -> None:
        """Print a verb's answer."""
        if self._as_json:
            self._write(answer.value)
            return
        from rich.console import Console

        answer.show(Console(highlight=False))
        sys.stdout.flush()

    def fail(self, problem: Problem) -> None:
        """Say what went wrong: in words on stderr (at most five lines), and as JSON where that is asked for."""
        lines = [*problem.cause.strip().splitlines()[:3], *f"→ {problem.remedy}".splitlines()[:2]]
        print("\n".join(lines), file=sys.stderr, flush=True)
        if self._as_json:
            with contextlib.suppress(OSError):  # stdout itself may be what is full or closed
                self._write(problem._asdict())

    def _write(self, value: Json) -> None:
        data = (json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "replace")
        while data:
            data = data[os.write(self._saved, data) :]


def table(rows: Sequence[Mapping[str, Json]], columns: Sequence[str] = ()) -> Callable[[Console], None]:
    """Show objects as a table: these columns, or one for each key."""

    def show(console: Console) -> None:
        from rich.markup import escape
        from rich.table import Table

        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        shown = columns or list(dict.fromkeys(key for row in rows for key in row))
        for column in shown:
            made.add_column(column, overflow="fold", no_wrap=column == "name")
        for row in rows:
            made.add_row(*(escape(_cell(row.get(column))) for column in shown))
        console.print(made if rows else "(none)")

    return show


def _cell(value: Json) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_cell, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={_cell(item)}" for key, item in value.items())
    return "" if value is None else str(value)
