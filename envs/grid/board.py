"""Levels, states and moves. Cells are numbered row by row; every level has a wall around it.

#  wall     _  floor or ice   @  you       x  target or exit   +  you on a target
o  box      *  box on target  ~  hole      r  key (lower case) R  its door (upper case)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.errors import EnvError
from turnwise.tasks.core import Task

DIRECTIONS = ("up", "down", "left", "right")
COLOURS = "rgbypw"


class Board:
    """What stays the same during an episode."""

    def __init__(self, task: Task) -> None:
        options = task.options
        try:
            rows: Sequence[str] = options["level"]
            self.game: str = options["game"]
            self.moves, self.slip, self.sight = options["moves"], options["slip"], options["sight"]
            self.full, self.image = options["text"] == "full", bool(options["image"])
            cells = "".join(rows)
            self.width = len(rows[0])
        except (KeyError, TypeError, IndexError) as error:
            raise EnvError(f"This is no grid task: {error!r}.", "Take tasks from a suite.") from None
        self.task = task
        self.height = len(rows)
        self.step = {"up": -self.width, "down": self.width, "left": -1, "right": 1}
        self.walls = frozenset(i for i, cell in enumerate(cells) if cell == "#")
        self.holes = frozenset(i for i, cell in enumerate(cells) if cell == "~")
        self.targets = frozenset(i for i, cell in enumerate(cells) if cell in "x*+")
        self.boxes = tuple(i for i, cell in enumerate(cells) if cell in "o*")
        self.keys = {i: 1 << COLOURS.index(cell) for i, cell in enumerate(cells) if cell in COLOURS}
        self.doors = {
            i: 1 << COLOURS.index(cell.lower()) for i, cell in enumerate(cells) if cell in COLOURS.upper()
        }
        self.start = next(i for i, cell in enumerate(cells) if cell in "@+")
        self.floor: Sequence[str] = [
            "#" if i in self.walls else "~" if i in self.holes else "x" if i in self.targets else "_"
            for i in range(len(cells))
        ]
        self.planned: dict[tuple[int, tuple[int, ...], int], tuple[str, float]] = {}  # filled by plans.py

    def __repr__(self) -> str:
        return f"Board({self.task.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Board) and other.task.id == self.task.id

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __reduce__(self) -> tuple[type[Board], tuple[Task]]:
        return Board, (self.task,)


class GridState(NamedTuple):
    """A moment. ``boxes`` are in order; ``keys`` has a bit per colour that was found."""

    board: Board
    agent: int
    boxes: tuple[int, ...] = ()
    keys: int = 0


def begin(board: Board) -> GridState:
    """The first moment."""
    return GridState(board, board.start, board.boxes)


def move(state: GridState, direction: str) -> GridState:
    """The state after a move; the same one where the way is blocked. Keys are found by walking over them,
    doors opened by walking through, boxes pushed."""
    board = state.board
    step = board.step[direction]
    cell = state.agent + step
    if cell in board.walls or (cell in board.doors and not board.doors[cell] & state.keys):
        return state
    if cell in state.boxes:
        beyond = cell + step
        if beyond in board.walls or beyond in state.boxes:
            return state
        boxes = tuple(sorted(beyond if box == cell else box for box in state.boxes))
        return GridState(board, cell, boxes)
    if cell in board.keys:
        return GridState(board, cell, state.boxes, state.keys | board.keys[cell])
    return GridState(board, cell, state.boxes, state.keys)


def solved(state: GridState) -> bool:
    """All boxes on targets, or the exit reached."""
    targets = state.board.targets
    return targets.issuperset(state.boxes) if state.boxes else state.agent in targets


def sunk(state: GridState) -> bool:
    """Whether the ice broke."""
    return state.agent in state.board.holes


def picture(state: GridState) -> list[list[str]]:
    """The cells that can be seen, row by row: all, or those at most ``sight`` away."""
    board = state.board
    cells = list(board.floor)
    for cell, bit in board.doors.items():
        if not bit & state.keys:
            cells[cell] = COLOURS[bit.bit_length() - 1].upper()
    for cell, bit in board.keys.items():
        if not bit & state.keys:
            cells[cell] = COLOURS[bit.bit_length() - 1]
    for box in state.boxes:
        cells[box] = "*" if box in board.targets else "o"
    cells[state.agent] = "+" if state.agent in board.targets else "@"
    rows = [cells[i : i + board.width] for i in range(0, len(cells), board.width)]
    if not board.sight:
        return rows
    y, x = divmod(state.agent, board.width)
    near = range(-board.sight, board.sight + 1)
    return [
        [
            rows[y + dy][x + dx] if 0 <= y + dy < board.height and 0 <= x + dx < board.width else "#"
            for dx in near
        ]
        for dy in near
    ]
