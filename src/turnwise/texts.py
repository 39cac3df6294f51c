"""Text of files: bytes stay what they are, lines end at a line feed, and what is not UTF-8 is an error with its line.

``str.splitlines`` also cuts at form feeds and at U+0085, U+2028 and U+2029, which may stand inside a line of source
or a JSON string. ``decode(…, "replace")`` loses what it replaces. Readers of files come here instead.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from turnwise.errors import FileError

_BOM = "\ufeff"
_ESCAPED = re.compile("[\udc80-\udcff]")


class JsonRow(NamedTuple):
    """A line of a JSONL file: its number, from 1, and its value."""

    number: int
    value: Any


def lines_of(text: str) -> list[str]:
    r"""The lines of a text as ``grep -n`` and compilers count them: each ends at a line feed, with or without a return.

    >>> lines_of("a\r\n\fb\u2028c\n")
    ['a', '\x0cb\u2028c']
    """
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def lines_with_ends(data: bytes) -> Iterator[bytes]:
    r"""The lines of bytes, each with the line feed that ends it; ``bytes.splitlines`` also cuts at a return.

    >>> list(lines_with_ends(b'{"a":\r1}\r\n{}'))
    [b'{"a":\r1}\r\n', b'{}']
    """
    return iter(io.BytesIO(data))


def kept(data: bytes) -> str:
    r"""Bytes as text from which :func:`as_bytes` makes the same bytes again, whatever their encoding.

    >>> as_bytes(kept(b"Z\xfcrich\r\n"))
    b'Z\xfcrich\r\n'
    """
    return data.decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """The bytes of a text that :func:`kept` made, or of any other that is valid Unicode."""
    return text.encode("utf-8", "surrogateescape")


def shown(text: str) -> str:
    r"""Text of :func:`kept` as a reader may see it, as long as it was: each byte that is no UTF-8 is one U+FFFD.

    >>> shown(kept(b"Z\xfcrich"))
    'Z\ufffdrich'
    """
    return _ESCAPED.sub("\ufffd", text)


class EditedFile(NamedTuple):
    """A file as an editor works on it: lines end in a line feed, and how they ended is kept for writing.

    Where lines end both ways the returns stay in the text, so that they are not changed.
    """

    text: str
    end: str = "\n"
    mark: str = ""  # a byte order mark

    @classmethod
    def read(cls, data: bytes) -> EditedFile:
        r"""
        >>> EditedFile.read(b"\xef\xbb\xbfa\r\nb\r\n")
        EditedFile(text='a\nb\n', end='\r\n', mark='\ufeff')
        """
        text = kept(data)
        mark = _BOM if text.startswith(_BOM) else ""
        text = text.removeprefix(_BOM)
        returns = 0 < text.count("\r\n") == text.count("\n") == text.count("\r")
        return cls(text.replace("\r\n", "\n"), "\r\n", mark) if returns else cls(text, "\n", mark)

    def to_bytes(self) -> bytes:
        r"""
        >>> EditedFile("a\nb\n", "\r\n").to_bytes()
        b'a\r\nb\r\n'
        """
        return as_bytes(self.mark + (self.text.replace("\n", self.end) if self.end != "\n" else self.text))


@contextmanager
def reading(path: Path | str, remedy: str) -> Iterator[Path]:
    """Turn an error of the file system into one that names the file.

    Raises:
        FileError: the file cannot be opened or read.
    """
    place = Path(path).expanduser()
    try:
        yield place
    except OSError as error:
        raise FileError(f"{place} cannot be read: {error.strerror or error}.", remedy) from None


def read_utf8(path: Path | str, remedy: str) -> str:
    """A file's text, without its byte order mark.

    Raises:
        FileError: it cannot be read, or is not UTF-8; file and line are named.
    """
    with reading(path, remedy) as place:
        data = place.read_bytes()
    return utf8(data, str(path)).removeprefix(_BOM)


def utf8(data: bytes, name: str, first: int = 1) -> str:
    """Bytes as text. ``first`` is the number of their first line.

    Raises:
        FileError: they are not UTF-8; the place is named.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = first + data.count(b"\n", 0, error.start)
        column = error.start - data.rfind(b"\n", 0, error.start)
        wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
        raise FileError(
            f"{name}:{line} is not UTF-8: byte 0x{data[error.start]:02x} at column {column}.",
            f"Write the file as UTF-8: iconv -f {'UTF-16' if wide else 'LATIN1'} -t UTF-8 FILE > NEW.",
        ) from None


def json_rows(lines: Iterable[bytes], name: str, remedy: str, first: int = 1) -> Iterator[JsonRow]:
    """The values of JSON lines, such as a file that is open for bytes; blank lines are passed over. ``first`` is the number of the first.

    Raises:
        FileError: a line is not UTF-8 or no JSON; file and line are named.
    """
    for number, line in enumerate(lines, first):
        text = utf8(line, name, number)
        text = text.removeprefix(_BOM) if number == 1 else text
        if not text.strip(" \t\r\n"):
            continue
        try:
            yield JsonRow(number, json.loads(text))
        except (ValueError, RecursionError) as error:
            hint = " It looks like UTF-16." if "\0" in text else ""
            raise FileError(f"{name}:{number} is no JSON: {error}.{hint}", remedy) from None


def read_json_lines(path: Path | str, remedy: str = "Name a file of JSON lines.") -> Iterator[JsonRow]:
    """The values of a JSONL file, read as they are asked for.

    Raises:
        FileError: it cannot be read, or a line is not UTF-8 or no JSON; file and line are named.
    """
    with reading(path, remedy) as place, place.open("rb") as file:
        yield from json_rows(file, str(path), remedy)
