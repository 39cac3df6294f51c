"""The pieces that a file of records is made of: intact ones, and what lies between them.

A log is a row of zstd frames of whole lines, each with its checksum, or of plain lines. Where a frame cannot be
read, the next one that can is looked for: damage costs what it hit and nothing behind it.

Files may come from strangers: no frame unpacks to more than :data:`MOST_FRAME`, and all searches in a file together handle
at most :data:`SEARCH` times its bytes, whatever stands in it.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from turnwise.errors import TurnwiseError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"\x28\xb5\x2f\xfd"
MOST_FRAME = 1 << 28
"""Bytes that a frame may unpack to, or a plain line have. Writers stay well below it."""
FULL_FRAME = 1 << 25
"""Bytes of lines with which a frame is written."""
SEARCH, SEARCH_AT_LEAST = 256, 1 << 26
"""Bytes that the search for intact frames may handle, packed and unpacked: so many times the file's, or this if it is
more."""
_FIRST_CHUNK, _CHUNK = 1 << 8, 1 << 20
_FORM: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}

Bytes: TypeAlias = "mmap.mmap | bytes"


class Piece(NamedTuple):
    """The bytes from ``start`` to ``end`` of a file, and the whole lines they hold; None: they cannot be read, ``why``."""

    start: int
    end: int
    lines: bytes | None
    last: bool  # it reaches the end of the file
    why: str = ""


def pieces(path: Path, start: int = 0) -> Iterator[Piece]:
    """All pieces of a file from ``start`` on, where one must begin, in order and without gaps.

    Raises:
        TurnwiseError: so much of it is damaged that no more is looked for.
    """
    with path.open("rb") as file:
        if not file.read(1):
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            zipped = path.suffix == ".zst" or data[: len(MAGIC)] == MAGIC
            yield from (_frames(path, data, start) if zipped else _plain(data, start))


def compress(lines: bytes) -> bytes:
    """One frame."""
    return zstd.compress(lines, options=_FORM)


def frames_of(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines as frames, each of a size that is read again."""
    kept: list[bytes] = []
    size = 0
    for line in lines:
        if kept and size + len(line) > FULL_FRAME:
            yield compress(b"".join(kept))
            kept, size = [], 0
        kept.append(line)
        size += len(line)
    if kept:
        yield compress(b"".join(kept))


def _plain(data: Bytes, start: int) -> Iterator[Piece]:
    size = len(data)
    while start < size:
        newline = data.find(b"\n", start)
        end = size if newline < 0 else newline + 1
        if end - start > MOST_FRAME:
            yield Piece(start, end, None, end == size, _TOO_LARGE)
        else:
            yield Piece(start, end, None if newline < 0 else data[start:end], end == size)
        start = end


def _frames(path: Path, data: Bytes, start: int) -> Iterator[Piece]:
    size, search = len(data), _Search(path, len(data))
    while start < size:
        piece = _frame(data, start)
        if isinstance(piece, _Failed):
            after = search.next_frame(data, start + 1)
            piece = Piece(start, after, None, after == size and not piece.why, piece.why)
        yield piece
        start = piece.end


class _Failed(NamedTuple):
    """Bytes that are no whole frame: how many were handled until this was seen, and why, if they were not just cut or changed."""

    handled: int
    why: str = ""


_TOO_LARGE = f"it unpacks to more than {MOST_FRAME >> 20} MiB"


def _frame(data: Bytes, start: int, most: float = math.inf) -> Piece | _Failed:
    """The frame that begins here, if it is whole; at most ``most`` bytes are handled to see that, packed and unpacked."""
    decoder = zstd.ZstdDecompressor()
    parts: list[bytes] = []
    at, size, chunk, made = start, len(data), _FIRST_CHUNK, 0
    try:
        while not decoder.eof:
            fed = b""
            if decoder.needs_input:
                if at >= size:
                    return _Failed(at - start + made)
                fed = data[at : at + chunk]
                at, chunk = at + len(fed), min(2 * chunk, _CHUNK)
            parts.append(decoder.decompress(fed, _CHUNK))
            made += len(parts[-1])
            if made > MOST_FRAME:
                return _Failed(at - start + made, _TOO_LARGE)
            if at - start + made > most:
                return _Failed(at - start + made)
    except zstd.ZstdError:
        return _Failed(at - start + made)
    end = at - len(decoder.unused_data)
    return Piece(start, end, b"".join(parts), end == size)


class _Search:
    """Looks for intact frames behind damage, as far as the file's bytes allow: bytes can be made that look like a frame everywhere."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._left = path, max(SEARCH * size, SEARCH_AT_LEAST)

    def next_frame(self, data: Bytes, start: int) -> int:
        """Find the beginning of the next whole frame; the end if there is none.

        Raises:
            TurnwiseError: what may be handled is used up.
        """
        while (start := data.find(MAGIC, start)) >= 0:
            found = _frame(data, start, self._left)
            if isinstance(found, Piece):
                self._left -= found.end - found.start + len(found.lines or b"")
                return start
            self._left -= found.handled
            if self._left <= 0:
                raise TurnwiseError(
                    f"{self._path} is damaged in so many places, up to byte {start} at least, that no more of it is looked for.",
                    "It is left as it is. A copy that is whole, or shorter, can be read; a file like this is hardly an accident.",
                )
            start += 1
        return len(data)
