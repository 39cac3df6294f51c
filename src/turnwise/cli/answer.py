"""The answer of a command, and its output as text or JSON."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias

from turnwise.errors import RecipeError
from turnwise.terminal import guard, json_line

if TYPE_CHECKING:
    from turnwise.console import SafeConsole

Json: TypeAlias = Any


@dataclass(frozen=True)
class VerbResult:
    """A command's result: its JSON value, its form for the terminal, and the exit code."""

    value: Json
    show: Callable[[SafeConsole], None]
    code: int = 0


class VerbProblem(NamedTuple):
    """A verb's problem: the kind of error, its cause, and what to do about it."""

    error: str
    cause: str
    remedy: str


class Output:
    """Standard output and error, guarded; the former is kept for the answer alone where JSON is asked for.

    Libraries print (vllm does, from C++ too), so file descriptor 1 itself leads to stderr meanwhile.
    """

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._saved = -1
        self._unguard: Callable[[], None] | None = None

    def __enter__(self) -> Self:
        self._unguard = guard()
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
        if self._unguard is not None:
            self._unguard()

    def fileno(self) -> int:
        return self._saved if self._as_json else 1

    def show(self, answer: VerbResult) -> None:
        """Print a verb's answer."""
        if self._as_json:
            self._write(answer.value)
            return
        from turnwise.console import SafeConsole

        answer.show(SafeConsole())
        sys.stdout.flush()

    def fail(self, problem: VerbProblem) -> None:
        """Say what went wrong: in words on stderr (at most five lines), and as JSON where that is asked for.

        A recipe's mistakes are reported all at once, a line for each.
        """
        most = 40 if problem.error == RecipeError.__name__ else 3
        lines = [*problem.cause.strip().splitlines()[:most], *f"→ {problem.remedy}".splitlines()[:2]]
        print("\n".join(lines), file=sys.stderr, flush=True)
        if self._as_json:
            with contextlib.suppress(OSError):  # stdout itself may be what is full or closed
                self._write(problem._asdict())

    def _write(self, value: Json) -> None:
        data = f"{json_line(value)}\n".encode()
        while data:
            data = data[os.write(self._saved, data) :]


def table(rows: Sequence[Mapping[str, Json]], columns: Sequence[str] = ()) -> Callable[[SafeConsole], None]:
    """Show objects as a table: these columns, or one for each key."""

    def show(console: SafeConsole) -> None:
        from rich.table import Table

        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        shown = columns or list(dict.fromkeys(key for row in rows for key in row))
        for column in shown:
            made.add_column(column, overflow="fold", no_wrap=column == "name")
        for row in rows:
            made.add_row(*(_cell(row.get(column)) for column in shown))
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
