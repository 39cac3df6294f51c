"""The pieces that a file of records is made of: intact ones, and what lies between them.

A log is a row of zstd frames of whole lines, each with its checksum, or of plain lines. Where a frame cannot be
read, the next one that can is looked for: damage costs what it hit and nothing behind it.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MAGIC = b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 20
_FORM: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}

Bytes: TypeAlias = "mmap.mmap | bytes"


class Piece(NamedTuple):
    """The bytes from ``start`` to ``end`` of a file, and the whole lines they hold; None: they cannot be read."""

    start: int
    end: int
    lines: bytes | None
    last: bool  # it reaches the end of the file


def pieces(path: Path, start: int = 0) -> Iterator[Piece]:
    """All pieces of a file from ``start`` on, where one must begin, in order and without gaps."""
    with path.open("rb") as file:
        if not file.read(1):
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            zipped = path.suffix == ".zst" or data[: len(MAGIC)] == MAGIC
            yield from (_frames(data, start) if zipped else _plain(data, start))


def compress(lines: bytes) -> bytes:
    """One frame."""
    return zstd.compress(lines, options=_FORM)


def _plain(data: Bytes, start: int) -> Iterator[Piece]:
    size = len(data)
    while start < size:
        newline = data.find(b"\n", start)
        end = size if newline < 0 else newline + 1
        yield Piece(start, end, None if newline < 0 else data[start:end], end == size)
        start = end


def _frames(data: Bytes, start: int) -> Iterator[Piece]:
    size = len(data)
    while start < size:
        piece = _frame(data, start)
        if piece is None:
            after = _next_frame(data, start + 1)
            piece = Piece(start, after, None, after == size)
        yield piece
        start = piece.end


def _frame(data: Bytes, start: int) -> Piece | None:
    """The frame that begins here, if it is whole."""
    decoder = zstd.ZstdDecompressor()
    parts: list[bytes] = []
    at, size = start, len(data)
    try:
        while at < size and not decoder.eof:
            parts.append(decoder.decompress(data[at : at + _CHUNK]))
            at = min(at + _CHUNK, size)
    except zstd.ZstdError:
        return None
    if not decoder.eof:
        return None
    end = at - len(decoder.unused_data)
    return Piece(start, end, b"".join(parts), end == size)


def _next_frame(data: Bytes, start: int) -> int:
    """Where the next whole frame begins; the end if there is none."""
    while (start := data.find(MAGIC, start)) >= 0:
        if _frame(data, start) is not None:
            return start
        start += 1
    return len(data)
