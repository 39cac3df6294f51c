"""Search on boards: what positions are worth (alpha-beta), the best moves, a game that one side wins with the other's help.

The deduction games and poker are solved in their plays: by what fits every answer, and by best responses.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from turnwise.envs.games.boards import Board, lines, moves, wins
from turnwise.envs.worlds.solver import shortest_plan

WIN = 1000  # a win at once; one that takes n more stones is worth n less


@functools.lru_cache(maxsize=200_000)
def value(board: Board, mine: int, theirs: int, depth: int, low: int = -WIN, high: int = WIN) -> int:
    """Return the position's worth to the mover, by alpha-beta: > 0 won, < 0 lost, sooner is more.

    Beyond ``depth`` stones a position counts as even, so 0 means a draw only where the depth reaches the end.
    """
    offered = moves(board, mine | theirs)
    if not offered or not depth:
        return 0
    if any(wins(board, mine | 1 << cell, cell) for cell in offered):
        return WIN
    best = -WIN
    for cell in offered:
        after = value(board, theirs, mine | 1 << cell, depth - 1, -high - 1, -low + 1)
        best = max(best, -after + (after > 0) - (after < 0))
        low = max(low, best)
        if low >= high:
            break
    return best


def worth(board: Board, mine: int, theirs: int, cell: int, depth: int) -> int:
    """Return the worth to the mover of putting a stone on ``cell``."""
    if wins(board, mine | 1 << cell, cell):
        return WIN
    after = value(board, theirs, mine | 1 << cell, max(0, depth - 1))
    return -after + (after > 0) - (after < 0)


def best_moves(board: Board, mine: int, theirs: int, depth: int) -> list[int]:
    """The cells that are worth most, as far as ``depth`` stones are looked ahead."""
    worths = {cell: worth(board, mine, theirs, cell, depth) for cell in moves(board, mine | theirs)}
    most = max(worths.values())
    return [cell for cell, what in worths.items() if what == most]


def joint_plan(board: Board, mine: int, theirs: int, *, for_mover: bool) -> list[int]:
    """The cells of a shortest game that the mover (or else the other) wins, if both sides want it; [] if none."""

    def successors(node: tuple[int, int, bool]) -> Iterator[tuple[int, tuple[int, int, bool]]]:
        first, second, turn = node
        for cell in moves(board, first | second):
            stones = first | 1 << cell
            if not wins(board, stones, cell):
                yield cell, (second, stones, not turn)
            elif turn:
                yield cell, (second, stones, False)

    def estimate(node: tuple[int, int, bool]) -> float:
        first, second, turn = node
        own, other = (first, second) if turn else (second, first)
        missing = [(mask & ~own).bit_count() for mask in _masks(board) if not mask & other]
        least = min(missing, default=-1)
        return float("inf") if least < 0 else max(0.0, 2.0 * least - turn)

    plan = shortest_plan((mine, theirs, for_mover), successors, estimate, most=20_000)
    return [cell for _, cell in plan or ()]


@functools.lru_cache(maxsize=64)
def _masks(board: Board) -> frozenset[int]:
    return frozenset(mask for through in lines(board) for mask in through)


def full_depth(board: Board, mine: int, theirs: int) -> int:
    """Stones that are still to be put: a search of this depth is exact."""
    return board.size - (mine | theirs).bit_count()
