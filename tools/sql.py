"""SQL for models: a sqlite database that answers questions, within limits, and lets nothing else happen."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from turnwise.tools.core import ToolError

Access: TypeAlias = Literal["read", "write"]
_READ = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_WRITE = _READ | {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
_OUTSIDE = frozenset({"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"})
_CHANCE = frozenset({"random", "randomblob"})  # and the clock: the same episode must give the same answers
_CLOCK = frozenset(
    {"date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff", "current_timestamp"}
)
_FORBIDDEN = _OUTSIDE | _CHANCE | _CLOCK
_STEPS = 10_000  # of sqlite's machine between two looks at the clock
_CELL = 500  # characters of one value
_LONGEST = 20_000  # characters of a statement
_MOST_BYTES = 200_000  # of one value, inside the database: functions on it are not interrupted
_MOST_PATTERN = 1_000  # bytes of what LIKE and GLOB look for
_WIDEST = re.compile(r"%[^%a-zA-Z]*(?:\*|\d{4})")  # of printf: it would fill gigabytes before it fails


class Table(NamedTuple):
    """The answer of a statement. ``more``: there were more rows than were asked for."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    more: bool = False
    changed: int = 0

    def __str__(self) -> str:
        if not self.columns:
            return f"{self.changed} rows changed."
        lines = [" | ".join(self.columns), *(" | ".join(map(_cell, row)) for row in self.rows)]
        end = (
            f"[the first {len(self.rows)} rows; there are more]" if self.more else f"[{len(self.rows)} rows]"
        )
        return "\n".join([*lines, end])


class SqlTool:
    """A database in memory that a model may query, or change by one statement at a time.

    An authorizer admits SELECT (and with ``write`` INSERT, UPDATE and DELETE) and nothing else: no schema
    changes, no ATTACH, no PRAGMA, no functions that reach outside or depend on chance or the clock. Each
    statement is a transaction: it happens wholly or not at all.

    Args:
        script: SQL that builds the database.
        access: what statements may do.
        most_rows: rows of one answer.
        seconds: of one statement.
    """

    def __init__(
        self, script: str, *, access: Access = "read", most_rows: int = 50, seconds: float = 1.0
    ) -> None:
        self._base = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._base.executescript(script)
        self.most_rows, self.seconds, self._access = most_rows, seconds, access
        self._base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
        self._base.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _MOST_PATTERN)
        self._base.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST * 4)
        for name in ("printf", "format"):
            self._base.create_function(name, -1, _Printf(), deterministic=True)
        self._base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self._base.setlimit(sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200)
        self._base.set_authorizer(_authorizer(_WRITE if access == "write" else _READ))

    def query(self, sql: str) -> str:
        """Run one SQL statement and see its rows.

        Raises:
            ToolError: the statement is not allowed, broken, or takes too long.
        """
        return str(self.run(sql))

    def run(self, sql: str, values: Sequence[object] = ()) -> Table:
        """One statement's answer.

        Raises:
            ToolError: see :meth:`query`.
        """
        if len(sql) > _LONGEST:
            raise ToolError(f"A statement has at most {_LONGEST} characters.")
        until = time.monotonic() + self.seconds
        self._base.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
        try:
            return self._answer(sql, values)
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                raise ToolError(f"The statement took more than {self.seconds:g} s. Ask for less.") from None
            raise ToolError(f"SQL: {error}.") from None
        except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError, ValueError) as error:
            text = str(error)
            forbidden = "not authorized" in text or "prohibited" in text
            verbs = "SELECT" if self._access == "read" else "SELECT, INSERT, UPDATE and DELETE"
            raise ToolError(
                f"Only {verbs} are allowed here ({text})." if forbidden else f"SQL: {text[:300]}."
            ) from None
        finally:
            self._base.set_progress_handler(None, 0)

    def schema(self) -> str:
        """The statements that made the tables."""
        with self._unwatched():
            rows = self._base.execute(
                "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name"
            ).fetchall()
        return "\n".join(f"{row[0]};" for row in rows)

    def dump(self) -> bytes:
        """A copy of the whole database, for :meth:`load`; equal databases need not give equal bytes."""
        with self._unwatched():
            return self._base.serialize()

    def load(self, data: bytes) -> None:
        """Return to a copy."""
        with self._unwatched():
            self._base.deserialize(data)

    def close(self) -> None:
        self._base.close()

    @contextlib.contextmanager
    def _unwatched(self) -> Iterator[None]:
        self._base.set_authorizer(None)
        try:
            yield
        finally:
            self._base.set_authorizer(_authorizer(_WRITE if self._access == "write" else _READ))

    def _answer(self, sql: str, values: Sequence[object]) -> Table:
        before = self._base.total_changes
        cursor = self._base.execute(sql, values)
        rows = cursor.fetchmany(self.most_rows + 1)
        columns = tuple(column[0] for column in cursor.description or ())
        changed = self._base.total_changes - before
        cursor.close()
        return Table(columns, tuple(rows[: self.most_rows]), len(rows) > self.most_rows, changed)


class _Printf:
    """sqlite's own ``printf`` without fields of any width: with one it works for seconds, and nothing ends it."""

    def __init__(self) -> None:
        self._plain = sqlite3.connect(":memory:", check_same_thread=False)

    def __call__(self, *values: Any) -> Any:
        if not values:
            return None
        if isinstance(values[0], str) and _WIDEST.search(values[0]):
            raise ValueError("a field of printf is at most 999 wide, and no *")
        marks = ", ".join("?" * len(values))
        return self._plain.execute(f"SELECT printf({marks})", values).fetchone()[0]


def _authorizer(allowed: frozenset[int]) -> Callable[..., int]:
    def judge(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_READ and (first or "").startswith("sqlite_") and first != "sqlite_schema":
            return sqlite3.SQLITE_OK if first == "sqlite_master" else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action in allowed else sqlite3.SQLITE_DENY

    return judge


def _cell(value: object) -> str:
    text = "NULL" if value is None else f"[{len(value)} bytes]" if isinstance(value, bytes) else str(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= _CELL else f"{text[:_CELL]}…"
