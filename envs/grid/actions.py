"""Moves: how they are read, and what they do."""

from __future__ import annotations

from collections.abc import Sequence

from turnwise.envs.grid.state import GridBoard, GridState
from turnwise.envs.grid.vocabulary import DIRECTIONS, FILLERS, SYNONYMS
from turnwise.tools.core import ToolError


def read(board: GridBoard, words: Sequence[str]) -> Sequence[str]:
    """The directions that a command names; none where it only looks.

    Raises:
        ToolError: it names anything else, or too many.
    """
    found = [SYNONYMS.get(word, word) for word in words if word not in FILLERS]
    wrong = [word for word in found if word not in DIRECTIONS and word not in ("look", "wait")]
    if wrong or not found:
        raise ToolError("say up , down , left or right .")
    if len(found) > board.moves:
        raise ToolError(
            f"a turn makes at most {board.moves} moves ." if board.moves > 1 else "one move a turn ."
        )
    return [word for word in found if word in DIRECTIONS]


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


def possible(state: GridState) -> list[str]:
    """The moves that change something."""
    return [direction for direction in DIRECTIONS if move(state, direction) != state]
