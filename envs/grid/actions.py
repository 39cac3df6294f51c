"""Moves: how they are read, and what they do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from turnwise.envs.grid.state import GridBoard, GridState
from turnwise.envs.grid.vocabulary import COUNTS, DIRECTIONS, FILLERS, FORMS, SYNONYMS, TAILS
from turnwise.tools.core import ToolError

_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\(?\d{1,2}[.):])[ \t]*", re.MULTILINE)
_SAID = FORMS.verbs | FORMS.traits | {"and", "then", "move", "moves"}


def in_a_row(text: str) -> str:
    """The moves of one turn in a line, where a text is nothing else; any other text as it is.

    >>> in_a_row("1. up\\n2. left"), in_a_row('{"moves": ["up", "left"]}'), in_a_row("up\\nor left")
    ('up , left', 'moves , up , left', 'up\\nor left')
    """
    words = re.findall(r"[a-z]+|\d+", _ITEM.sub("", text.lower())) if len(text) < 300 else []
    several = any(sign in text for sign in "\n;[")
    return " , ".join(words) if several and words and _SAID.issuperset(words) else text


def read(board: GridBoard, words: Sequence[str]) -> Sequence[str]:
    """The directions that a command names; none where it only looks.

    Raises:
        ToolError: it names anything else, or too many.
    """
    if words[0] in ("look", "wait"):  # "look left" is no step
        return ()
    end = next((place for place, word in enumerate(words) if word in TAILS), len(words))
    said = [SYNONYMS.get(word, word) for word in words[:end] if word not in FILLERS]
    if not said or any(word not in DIRECTIONS and _number(word) is None for word in said):
        raise ToolError("say up , down , left or right .")
    counted = _counted(said)
    if not counted:
        raise ToolError("say up , down , left or right .")
    if not 0 < sum(number for _, number in counted) <= board.moves:
        raise ToolError(
            f"a turn makes at most {board.moves} moves ." if board.moves > 1 else "one move a turn ."
        )
    return [direction for direction, number in counted for _ in range(number)]


def _counted(said: Sequence[str]) -> Sequence[tuple[str, int]]:
    """Directions and how often each is gone; nothing where a number belongs to none. If a number comes first, numbers
    stand before their directions, else behind them."""
    numbers = [_number(word) for word in said]
    first = numbers[0] is not None
    counted: list[tuple[str, int]] = []
    used = 0
    for place, word in enumerate(said):
        if numbers[place] is not None:
            continue
        beside = place - 1 if first else place + 1
        number = numbers[beside] if 0 <= beside < len(said) else None
        used += number is not None
        counted.append((word, 1 if number is None else number))
    return counted if used == len(said) - len(counted) else ()


def _number(word: str) -> int | None:
    return int(word) if word.isdecimal() and len(word) < 4 else COUNTS.get(word)


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
