"""Passages: in memory, or as lines of a JSONL file that is mapped and never read as a whole.

A line is ``{"id", "title", "text"}``, or Search-R1's ``{"id", "contents": "\"title\"\ntext"}``; our own
files add ``kind`` and ``date``.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from turnwise.errors import EnvError
from turnwise.tasks.core import Json

_CHUNK = 1 << 24


class Passage(NamedTuple):
    """A piece of a corpus. ``kind`` and ``date`` (a year) are what it is filtered by; "" and 0 if unknown."""

    title: str
    text: str
    id: str = ""
    kind: str = ""
    date: int = 0

    @property
    def contents(self) -> str:
        """As Search-R1 writes it: the title in quotes, then the text."""
        return f'"{self.title}"\n{self.text}'

    def to_json(self) -> dict[str, Json]:
        data = {"id": self.id, "title": self.title, "text": self.text}
        return data | ({"kind": self.kind} if self.kind else {}) | ({"date": self.date} if self.date else {})

    @staticmethod
    def from_json(data: Any) -> Passage:
        """A passage in any of the formats above.

        >>> Passage.from_json({"id": 7, "contents": '"Velmora"\\nA town.'})
        Passage(title='Velmora', text='A town.', id='7', kind='', date=0)

        Raises:
            ValueError: it is none of them.
        """
        if not isinstance(data, dict):
            raise ValueError("a passage must be a JSON object")  # noqa: TRY004 (one error for what is no passage)
        title, text = data.get("title"), data.get("text")
        if not isinstance(text, str):
            contents = data.get("contents")
            if not isinstance(contents, str):
                raise ValueError('a passage needs "text" or "contents"')  # noqa: TRY004
            first, _, rest = contents.partition("\n")
            title, text = title or first.strip().strip('"'), rest or contents
        date = data.get("date", 0)
        return Passage(
            str(title or ""),
            text,
            str(data.get("id", "")),
            str(data.get("kind", "")),
            date if isinstance(date, int) else 0,
        )


class Corpus(Protocol):
    """A read-only collection of passages, which are found by their position."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> Passage: ...


class FileCorpus:
    """The lines of a mapped JSONL file; only what is asked for is read."""

    def __init__(self, path: Path, offsets: NDArray[np.int64]) -> None:
        self._path, self._offsets = path, offsets
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, position: int) -> Passage:
        if not 0 <= position < len(self):
            raise IndexError(position)
        line = self._map[self._offsets[position] : self._offsets[position + 1]]
        return read_line(line, self._path, position)


def read_line(line: bytes, path: Path, position: int) -> Passage:
    """The passage of a line.

    Raises:
        EnvError: it is none; file and line are named.
    """
    try:
        return Passage.from_json(json.loads(line))
    except ValueError as error:
        raise EnvError(
            f"{path}, passage {position + 1}: {error}.",
            'Each line must be {"id", "title", "text"} or {"id", "contents"}.',
        ) from None


def line_offsets(path: Path) -> NDArray[np.int64]:
    """Return the offsets at which the lines of a file begin, and at which the last one ends.

    Blank lines at the end do not count.
    """
    found = [np.zeros(1, np.int64)]
    size = done = 0
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            breaks = np.flatnonzero(np.frombuffer(chunk, np.uint8) == 10)
            found.append(breaks + (done + 1))
            done += len(chunk)
            size, last = done, chunk[-1:]
    offsets = np.concatenate(found)
    if last not in (b"\n", b""):
        offsets = np.append(offsets, size)
    return offsets


def write_jsonl(path: Path, passages: Iterable[Passage]) -> Iterator[Passage]:
    """Write passages as they pass through."""
    with path.open("w", encoding="utf-8") as file:
        for passage in passages:
            file.write(json.dumps(passage.to_json(), ensure_ascii=False) + "\n")
            yield passage


class Facets(NamedTuple):
    """Filters of passages: ``kind`` as a number of ``kinds``, and a year."""

    kinds: Sequence[str]
    kind_P: NDArray[np.uint8]
    date_P: NDArray[np.int16]
