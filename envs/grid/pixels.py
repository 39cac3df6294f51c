"""A level as a picture (PNG), for policies that see."""

from __future__ import annotations

import functools
import struct
import zlib

from turnwise.envs.grid.render import picture
from turnwise.envs.grid.state import GridState

_CELL = 14  # pixels
_MARGIN = 3  # pixels around what stands in a cell
_FLOOR = (226, 226, 220)
_FULL = {"#": (70, 70, 78), "~": (40, 90, 170)}  # what fills its cell
_INNER = {
    "@": (255, 120, 0), "+": (255, 120, 0), "o": (160, 100, 40), "*": (90, 150, 60), "x": (20, 20, 20),
    "r": (230, 50, 50), "g": (50, 170, 80), "b": (60, 60, 220), "y": (220, 190, 30), "p": (150, 60, 170),
    "w": (255, 255, 255),
}  # fmt: skip
_DARK = 0.6  # doors are keys' colours, darker, and fill their cell


def png(state: GridState) -> bytes:
    """The cells that can be seen, each 14 × 14 pixels; keys are squares, doors fill their cell."""
    rows = [[_cell(sign) for sign in row] for row in picture(state)]
    lines = [
        b"\0" + b"".join(cell[y * _CELL * 3 : (y + 1) * _CELL * 3] for cell in row)
        for row in rows
        for y in range(_CELL)
    ]
    header = struct.pack(">IIBBBBB", len(rows[0]) * _CELL, len(rows) * _CELL, 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(lines), 1)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


@functools.cache
def _cell(sign: str) -> bytes:
    """The pixels of a cell, row by row."""
    if sign.isupper():
        door = tuple(int(_DARK * part) for part in _INNER[sign.lower()])
        return bytes(door) * _CELL**2
    outer = bytes(_FULL.get(sign, _FLOOR))
    inner = bytes(_INNER.get(sign, tuple(outer)))
    inside = range(_MARGIN, _CELL - _MARGIN)
    return b"".join(
        inner if x in inside and y in inside else outer for y in range(_CELL) for x in range(_CELL)
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
