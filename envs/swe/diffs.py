"""Unified diffs as git writes them: read, and applied to texts in either direction, exactly or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_MISSING = "\\ No newline at end of file"


class DiffError(ValueError):
    """A diff that cannot be read, or does not fit the text."""


class Hunk(NamedTuple):
    """Lines from ``line`` (counted from 1) on: what was there, and what is there afterwards."""

    line: int
    before: tuple[str, ...]
    after: tuple[str, ...]


def read_diff(text: str) -> dict[str, list[Hunk]]:
    """The hunks of each file by its path after the change.

    Raises:
        DiffError: it makes, removes or renames a file, or is no diff.
    """
    found: dict[str, list[Hunk]] = {}
    old, path = "", ""
    rows = text.splitlines(keepends=True)
    at = 0
    while at < len(rows):
        row = rows[at]
        at += 1
        if row.startswith(("rename ", "GIT binary", "Binary files")):
            raise DiffError("it renames a file, or one is no text")
        if row.startswith("--- "):
            old = _path(row)
        elif row.startswith("+++ "):
            path = _path(row)
            if "/dev/null" in (old, path) or old != path:
                raise DiffError("it makes, removes or renames a file")
            found[path] = []
        elif (match := _HUNK.match(row)) and path:
            hunk, at = _hunk(rows, at, int(match.group(1)))
            found[path].append(hunk)
    if not any(found.values()):
        raise DiffError("it changes nothing")
    return found


def apply_diff(
    diff: Mapping[str, list[Hunk]], texts: Mapping[str, str], *, reverse: bool = False
) -> dict[str, str]:
    """The changed texts by path. A hunk may have moved, but its lines must be there exactly once.

    Raises:
        DiffError: a file is missing, or a hunk does not fit.
    """
    return {path: "".join(_applied(path, hunks, texts, reverse)) for path, hunks in diff.items()}


def _applied(path: str, hunks: list[Hunk], texts: Mapping[str, str], reverse: bool) -> Iterator[str]:
    if path not in texts:
        raise DiffError(f"there is no {path}")
    lines, done = texts[path].splitlines(keepends=True), 0
    for hunk in hunks:
        old, new = (hunk.after, hunk.before) if reverse else (hunk.before, hunk.after)
        start = _place(lines, list(old), done, hunk.line - 1)
        if start is None:
            raise DiffError(f"{path} is not the text that it was made for")
        yield from lines[done:start]
        yield from new
        done = start + len(old)
    yield from lines[done:]


def _place(lines: list[str], wanted: list[str], first: int, guess: int) -> int | None:
    """Find these lines: at the place told, or else at the only one where they are."""
    if not wanted:
        return None
    if guess >= first and lines[guess : guess + len(wanted)] == wanted:
        return guess
    places = [at for at in range(first, len(lines)) if lines[at : at + len(wanted)] == wanted]
    return places[0] if len(places) == 1 else None


def _hunk(rows: list[str], at: int, line: int) -> tuple[Hunk, int]:
    before: list[str] = []
    after: list[str] = []
    last: list[list[str]] = []
    while at < len(rows) and (rows[at][0] in " +-\\" or rows[at] == "\n") and not rows[at].startswith("--- "):
        row = rows[at]
        at += 1
        if row.startswith(_MISSING):
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            continue
        last = [side for side, marks in ((before, " -\n"), (after, " +\n")) if row[0] in marks]
        for side in last:
            side.append(row[1:] or "\n")
    return Hunk(line, tuple(before), tuple(after)), at


def _path(row: str) -> str:
    name = row[4:].split("\t")[0].strip()
    return name if name == "/dev/null" else re.sub(r"^[ab]/", "", name)
