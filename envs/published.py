"""Rows of published benchmarks, out of the user's files: the whole list in its order, and what could not be read.

A broken row costs the others nothing: it is named with its file and its number, the suite says "499 of 500", and no figure of it
is called a published score.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from turnwise.errors import EnvError
from turnwise.tasks.core import Json, Suite
from turnwise.texts import json_rows, read_utf8, reading, utf8

Row = TypeVar("Row")
_NAMED = 3  # rows that are named in a note


class PublishedRows(NamedTuple, Generic[Row]):
    """The rows of a file that can be read, in order, and what keeps each of the others from it."""

    path: str
    rows: tuple[Row, ...]
    left_out: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Say which rows are missing; empty where none is."""
        if not self.left_out:
            return ""
        of = f"{len(self.rows)} of {len(self.rows) + len(self.left_out)}"
        named, more = "; ".join(self.left_out[:_NAMED]), len(self.left_out) - _NAMED
        return f"{of} rows of {self.path} can be played, so this is no published score: {named}{f'; and {more} more' if more > 0 else ''}."


def read_rows(
    path: str, what: str, read: Callable[[Mapping[str, Any]], Row], remedy: str
) -> PublishedRows[Row]:
    """The rows of a JSONL file, a JSON array, or a folder of JSON files with one row each.

    Args:
        path: as the user names it.
        what: the name of such a row, for messages: "a problem of humaneval".
        read: makes a row out of an object; KeyError, ValueError, TypeError, IndexError and SyntaxError say that it is none.
        remedy: what to do where nothing can be read.

    Raises:
        EnvError: not a single row is one.
        FileError: the file cannot be read, or is no UTF-8.
    """
    rows, left_out = list[Row](), list[str]()
    for where, value in _values(path, remedy):
        try:
            if isinstance(value, ValueError):
                raise value
            if not isinstance(value, dict):
                raise TypeError("it is no object")
            rows.append(read(value))
        except (ValueError, KeyError, TypeError, IndexError, SyntaxError) as error:
            said = " ".join(str(error).split())[:200]
            left_out.append(f"{where} is not {what}: {type(error).__name__}: {said}")
    if not rows:
        raise EnvError(f"{left_out[0]}." if left_out else f"{path} has no rows.", remedy)
    return PublishedRows(path, tuple(rows), tuple(left_out))


def published_suite(
    form: str, env: str, about: str, knobs: Mapping[str, Json], found: PublishedRows[Any]
) -> Suite:
    """The suite ``FORM:PATH`` of such rows: all of them in their order, the same in each split."""
    name = f"{form}:{found.path}"
    return Suite(name, env, about, knobs, len(found.rows), listed=True, note=found.note)


def _values(path: str, remedy: str) -> Iterator[tuple[str, Any]]:
    """Each row with its place, or the error in its place. A file in another encoding is no broken row, but no such file."""
    folder = Path(path)
    if folder.is_dir():
        for file in sorted(folder.rglob("*.json")):
            yield str(file), _parsed(read_utf8(file, remedy))
        return
    with reading(path, remedy) as place, place.open("rb") as file:
        is_array = file.read(4).removeprefix(codecs.BOM_UTF8).startswith(b"[")
        file.seek(0)
        if not is_array:
            for number, line in enumerate(file, 1):
                text = utf8(line, path, number).removeprefix("\ufeff" if number == 1 else "")
                if "\0" in text:
                    next(json_rows([line], path, remedy, number))  # says that it looks like UTF-16
                if text.strip(" \t\r\n"):
                    yield f"{path}:{number}", _parsed(text)
            return
    values = _parsed(read_utf8(path, remedy))
    if isinstance(values, ValueError):
        raise EnvError(
            f"{path} is one array, and not whole: {values}.", "Get the file again: a part is missing."
        )
    for number, value in enumerate(values, 1):
        yield f"{path}, row {number}", value


def _parsed(text: str) -> Any:
    """The value, or the error in its place."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return ValueError(f"it is no JSON: {error}")
