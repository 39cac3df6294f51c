"""Games of lines on a board (tic-tac-toe, connect four and their kind): rules on bitboards.

A position is two sets of cells, the mover's and the other's, as the bits of two integers: what is decided does not
depend on who sits where, so positions are shared by both seats.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple


class Board(NamedTuple):
    """A board of ``columns`` × ``rows``; ``line`` stones in a row win. With ``gravity`` stones fall."""

    columns: int
    rows: int
    line: int
    gravity: bool

    @property
    def size(self) -> int:
        return self.columns * self.rows


TICTACTOE = Board(3, 3, 3, gravity=False)
CONNECT_FOUR = Board(7, 6, 4, gravity=True)


@functools.lru_cache(maxsize=64)
def lines(board: Board) -> tuple[tuple[int, ...], ...]:
    """For each cell, the masks of the lines through it. Cell 0 is at the left of the top row."""
    through: list[list[int]] = [[] for _ in range(board.size)]
    for row in range(board.rows):
        for column in range(board.columns):
            for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
                last_row, last = row + down * (board.line - 1), column + right * (board.line - 1)
                if not (last_row < board.rows and 0 <= last < board.columns):
                    continue
                cells = [(row + down * i) * board.columns + column + right * i for i in range(board.line)]
                mask = sum(1 << cell for cell in cells)
                for cell in cells:
                    through[cell].append(mask)
    return tuple(map(tuple, through))


def moves(board: Board, taken: int) -> list[int]:
    """The cells that a stone can be put on, the middle columns first where stones fall."""
    if not board.gravity:
        return [cell for cell in range(board.size) if not taken >> cell & 1]
    return [cell for column in _middle_first(board.columns) if (cell := drop(board, taken, column)) >= 0]


@functools.lru_cache(maxsize=64)
def _middle_first(columns: int) -> tuple[int, ...]:
    return tuple(sorted(range(columns), key=lambda column: abs(2 * column - columns + 1)))


def drop(board: Board, taken: int, column: int) -> int:
    """The cell where a stone comes to lie in ``column``; -1 if it is full."""
    for row in range(board.rows - 1, -1, -1):
        cell = row * board.columns + column
        if not taken >> cell & 1:
            return cell
    return -1


def wins(board: Board, stones: int, cell: int) -> bool:
    """Say whether ``stones``, the one on ``cell`` being the last, hold a line."""
    return any(mask & stones == mask for mask in lines(board)[cell])


def winning_moves(board: Board, mine: int, theirs: int) -> list[int]:
    """Cells with which the mover wins at once."""
    return [cell for cell in moves(board, mine | theirs) if wins(board, mine | 1 << cell, cell)]


def rows_of(board: Board, mine: int, theirs: int) -> Sequence[str]:
    """The board as text, seen by the mover: x its own stones, o the other's; a space after each sign."""
    signs = ["x" if mine >> c & 1 else "o" if theirs >> c & 1 else "_" for c in range(board.size)]
    starts = range(0, board.size, board.columns)
    return [" ".join(signs[start : start + board.columns]) + " " for start in starts]
