"""``turnwise/Grid-v0``: Sokoban, mazes of keys and doors, frozen lakes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.core import End
from turnwise.envs.grid import plans
from turnwise.envs.grid.board import COLOURS, DIRECTIONS, Board, GridState, begin, move, picture, solved, sunk
from turnwise.envs.grid.pixels import png
from turnwise.envs.grid.tasks import GridKnobs, draw_task
from turnwise.envs.messages import Image
from turnwise.envs.worlds.commands import Answer, CommandEnv, Kept
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_board = Kept(Board)
_WORDS: Mapping[str, str] = dict(
    zip(("north", "south", "west", "east", "u", "d", "l", "r"), DIRECTIONS * 2, strict=True)
)
_FILLERS = frozenset(("go", "move", "push", "step", "walk", "one", "and", "box", "towards"))
_SIGNS = {
    "sokoban": "# wall, _ floor, @ you, o box, x target, * box on a target, + you on a target. You push a box by "
    "walking into it; you cannot pull, nor push two at once.",
    "maze": "# wall, _ floor, @ you, x exit, a small letter is a key, its capital the door that it opens. You "
    "take a key by walking over it.",
    "lake": "# shore, _ ice, @ you, x target, ~ hole.",
}


class GridEnv(CommandEnv[GridState]):
    """Move through a level that is told as text or shown as a picture."""

    turn_limit = 30
    floor: ClassVar[float] = 0.2
    benchmarks: ClassVar[Mapping[str, Mapping[str, Json]]] = {
        "sokoban": {"game": "sokoban", "boxes": 2, "turn_limit": 100},
        "maze": {"game": "maze", "size": 11, "doors": 2, "turn_limit": 100},
        "lake": {"game": "lake", "size": 10, "turn_limit": 100},
    }

    @classmethod
    def generate(cls, rng: Random, split: Split, **knobs: Json) -> Task:
        return draw_task(rng, split, check_knobs(GridKnobs, knobs, "grid"))

    def begin(self, task: Task) -> GridState:
        return begin(_board(task))

    def opening(self, state: GridState) -> tuple[str, str]:
        board = state.board
        if not board.full:
            return "grid : up , down , left or right .", f"{board.task.prompt}\n{_told(state)}"
        several = f"one to {board.moves} moves" if board.moves > 1 else "one move"
        ice = (
            f" The ice is slippery: of ten moves, {10 * board.slip:g} slide to the side."
            if board.slip
            else ""
        )
        system = f"A game on a grid. {_SIGNS[board.game]}{ice} Each turn, write {several}: up, down, left or right."
        return system, f"{board.task.prompt}\n{_told(state)}"

    def obey(self, state: GridState, words: Sequence[str]) -> Answer[GridState]:
        directions = self._directions(state.board, words)
        if not directions:  # looking about
            return Answer(state, _told(state))
        for number, direction in enumerate(directions):
            after = move(state, self._slide(state.board, direction, number))
            if after == state and not state.board.slip:
                return Answer(state, f"blocked .\n{_told(state)}")
            state = after
            if sunk(state):
                return Answer(state, "you fall into a hole .", End.FAILED)
            if solved(state):
                return Answer(state, "done .", End.SOLVED)
        return Answer(state, _told(state))

    def images(self, state: GridState) -> tuple[Image, ...]:
        return (Image(png(state)),) if state.board.image else ()

    def gold(self, state: GridState) -> str:
        return plans.gold(state)

    def demonstrate(self, state: GridState, rng: Random) -> str:
        """Makes a third (on ice) or half of the moves at random."""
        return plans.stumble(state, rng)

    def potential(self, state: GridState) -> float:
        """The share of the way that is behind: 1 − moves still needed / moves needed at first, at least 0."""
        return max(0.0, 1.0 - plans.distance(state) / plans.distance(begin(state.board)))

    def admissible(self, state: GridState) -> Sequence[str]:
        return plans.useful(state) or DIRECTIONS

    def state_key(self, state: GridState) -> str:
        what = repr((state.board.task.id, *state[1:]))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()

    def _directions(self, board: Board, words: Sequence[str]) -> Sequence[str]:
        found = [_WORDS.get(word, word) for word in words if word not in _FILLERS]
        wrong = [word for word in found if word not in DIRECTIONS and word not in ("look", "wait")]
        if wrong or not found:
            raise ToolError("say up , down , left or right .")
        if len(found) > board.moves:
            raise ToolError(
                f"a turn makes at most {board.moves} moves ." if board.moves > 1 else "one move a turn ."
            )
        return [word for word in found if word in DIRECTIONS]

    def _slide(self, board: Board, direction: str, number: int) -> str:
        if not board.slip:
            return direction
        rng = self.rng("slip", number)
        return rng.choice(plans.SIDEWAYS[direction]) if rng.random() < board.slip else direction


def _told(state: GridState) -> str:
    """The level, one row a line; each sign with a space behind it, so that it is the same token everywhere.
    Where there is a picture of it, the text does not repeat it."""
    rows = ["see the picture ."] if state.board.image else [" ".join(row) + " " for row in picture(state)]
    if state.keys:
        rows.append(f"keys : {' '.join(c for bit, c in enumerate(COLOURS) if state.keys >> bit & 1)} .")
    return "\n".join(rows)
