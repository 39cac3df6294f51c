"""Levels and states. Cells are numbered row by row; every level has a wall around it.

#  wall     _  floor or ice   @  you       x  target or exit   +  you on a target
o  box      *  box on target  ~  hole      r  key (lower case) R  its door (upper case)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from turnwise.envs.grid.vocabulary import COLOURS
from turnwise.errors import EnvError
from turnwise.tasks.core import Task


class GridBoard:
    """The part of a task that stays the same during an episode."""

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
        self.planned: dict[tuple[int, tuple[int, ...], int], tuple[str, float]] = {}  # filled by solver.py

    def __repr__(self) -> str:
        return f"GridBoard({self.task.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GridBoard) and other.task.id == self.task.id

    def __hash__(self) -> int:
        return hash(self.task.id)

    def __reduce__(self) -> tuple[type[GridBoard], tuple[Task]]:
        return GridBoard, (self.task,)


class GridState(NamedTuple):
    """A moment. ``boxes`` are in order; ``keys`` has a bit per colour that was found."""

    board: GridBoard
    agent: int
    boxes: tuple[int, ...] = ()
    keys: int = 0


def begin(board: GridBoard) -> GridState:
    """The first moment."""
    return GridState(board, board.start, board.boxes)


def solved(state: GridState) -> bool:
    """All boxes on targets, or the exit reached."""
    targets = state.board.targets
    return targets.issuperset(state.boxes) if state.boxes else state.agent in targets


def sunk(state: GridState) -> bool:
    """Say whether the ice broke."""
    return state.agent in state.board.holes
