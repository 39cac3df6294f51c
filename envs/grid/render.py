"""Rendering of a level as text."""

from __future__ import annotations

import re

from turnwise.envs.grid.state import GridBoard, GridState
from turnwise.envs.grid.vocabulary import COLOURS, SIGNS

_SPACED = re.compile(r" ([.,:])")


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


def opening(state: GridState) -> tuple[str, str]:
    """The system message and the first observation."""
    board = state.board
    text = f"{board.task.prompt}\n{told(state)}"
    if not board.full:
        return "grid : up , down , left or right .", text
    several = f"one to {board.moves} moves" if board.moves > 1 else "one move"
    ice = f" The ice is slippery: of ten moves, {10 * board.slip:g} slide to the side." if board.slip else ""
    system = (
        f"A game on a grid. {SIGNS[board.game]}{ice} Each turn, write {several}: up, down, left or right."
    )
    return system, text


def told(state: GridState) -> str:
    """The level, one row a line; each sign with a space behind it, so that it is the same token everywhere.
    Where there is a picture of it, the text does not repeat it."""
    rows = (
        [styled(state.board, "see the picture .")]
        if state.board.image
        else [" ".join(row) + " " for row in picture(state)]
    )
    if state.keys:
        keys = " ".join(c for bit, c in enumerate(COLOURS) if state.keys >> bit & 1)
        rows.append(styled(state.board, f"keys : {keys} ."))
    return "\n".join(rows)


def styled(board: GridBoard, text: str) -> str:
    """A sentence in the style of the task: full sentences have no space before their signs."""
    return _SPACED.sub(r"\1", text[0].upper() + text[1:]) if board.full else text
