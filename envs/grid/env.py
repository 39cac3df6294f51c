"""``turnwise/Grid-v0``: Sokoban, mazes of keys and doors, frozen lakes."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import ClassVar

from turnwise.envs.core import EndReason
from turnwise.envs.grid import solver
from turnwise.envs.grid.actions import in_a_row, move, possible, read
from turnwise.envs.grid.knobs import GridKnobs
from turnwise.envs.grid.pixels import png
from turnwise.envs.grid.render import opening, styled, told
from turnwise.envs.grid.state import GridBoard, GridState, begin, solved, sunk
from turnwise.envs.grid.tasks import draw_task
from turnwise.envs.grid.vocabulary import DIRECTIONS, FORMS, SIDEWAYS
from turnwise.envs.messages import Image, Message
from turnwise.envs.worlds.commands import CommandAnswer, CommandEnv, WorldCache
from turnwise.envs.worlds.knobs import check_knobs
from turnwise.envs.worlds.one_command import Forms
from turnwise.tasks.core import Json, Split, Task
from turnwise.tools.core import ToolError

_board = WorldCache(GridBoard)


class GridEnv(CommandEnv[GridState]):
    """Move through a level that is told as text or shown as a picture."""

    turn_limit = 30
    max_trivial_score: ClassVar[float] = 0.2
    forms: ClassVar[Forms | None] = FORMS
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

    def rules(self, task: Task) -> str:
        """Turns alone where a message may have several moves: how many is told with the game."""
        told = super().rules(task)
        several = told and task.options.get("moves", 1) > 1
        return f" You have {task.options.get('turn_limit', self.turn_limit)} turns." if several else told

    def opening(self, state: GridState) -> tuple[str, str]:
        return opening(state)

    def heard(self, state: GridState, action: Message) -> tuple[str, ...]:
        if state.board.moves > 1 and not action.tool_calls:
            action = dataclasses.replace(action, content=in_a_row(action.content))
        return super().heard(state, action)

    def obey(self, state: GridState, words: Sequence[str]) -> CommandAnswer[GridState]:
        try:
            directions = read(state.board, words)
        except ToolError as error:
            raise ToolError(styled(state.board, str(error))) from None
        if not directions:  # looking about
            return CommandAnswer(state, told(state))
        for number, direction in enumerate(directions):
            after = move(state, self._slide(state.board, direction, number))
            if after == state and not state.board.slip:
                return CommandAnswer(state, f"{styled(state.board, 'blocked .')}\n{told(state)}")
            state = after
            if sunk(state):
                return CommandAnswer(state, styled(state.board, "you fall into a hole ."), EndReason.FAILED)
            if solved(state):
                return CommandAnswer(state, styled(state.board, "done ."), EndReason.SOLVED)
        return CommandAnswer(state, told(state))

    def images(self, state: GridState) -> tuple[Image, ...]:
        return (Image(png(state)),) if state.board.image else ()

    def gold(self, state: GridState) -> str:
        return solver.gold(state)

    def demonstrate(self, state: GridState, rng: Random) -> str:
        """An imperfect scripted policy: a third (on ice) or half of its moves are random."""
        return solver.demonstrate(state, rng)

    def potential(self, state: GridState) -> float:
        """The share of the way that is behind: 1 − moves still needed / moves needed at first, at least 0."""
        return max(0.0, 1.0 - solver.distance(state) / solver.distance(begin(state.board)))

    def admissible(self, state: GridState) -> Sequence[str]:
        return possible(state) or DIRECTIONS

    def state_key(self, state: GridState) -> str:
        what = repr((state.board.task.id, *state[1:]))
        return hashlib.blake2b(what.encode(), digest_size=8).hexdigest()

    def _slide(self, board: GridBoard, direction: str, number: int) -> str:
        if not board.slip:
            return direction
        rng = self.rng("slip", number)
        return rng.choice(SIDEWAYS[direction]) if rng.random() < board.slip else direction
